//! A template file and the config file of an algorithm, read as Quark reads them.
//!
//! Sources: amd-quark 0.13, `quark/experimental/cli/register_template.py` (keys, types, names),
//! `quark/torch/quantization/config/config.py:2236` (names of algorithms in their configs).

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use serde_json::{Map, Value};

use crate::facts::named_files::{AlgorithmFile, Content, NamedFile, TemplateFile};

/// The most bytes of such a file.
const MOST: u64 = 4 * 1024 * 1024;
/// The most entries of a list in it.
const ENTRIES: usize = 1000;
/// The keys that a template may have.
const TEMPLATE_KEYS: [&str; 6] = [
    "model_type",
    "kv_layers_name",
    "q_layer_name",
    "gate_up_layers_name",
    "exclude_layers_name",
    "algorithm_configs",
];
/// Names in configs that are others on the command line.
const RENAMED: [(&str, &str); 2] = [("smooth", "smoothquant"), ("quarot", "rotation")];

/// Reads a template file.
pub fn template(path: &Path) -> NamedFile<TemplateFile> {
    read(path, template_of)
}

/// Reads the config file of an algorithm.
pub fn algorithm(path: &Path) -> NamedFile<AlgorithmFile> {
    read(path, algorithm_of)
}

fn read<T>(path: &Path, of: fn(&Map<String, Value>) -> Result<T, String>) -> NamedFile<T> {
    let content = match object(path) {
        Ok(None) => Content::Missing,
        Ok(Some(object)) => of(&object).map_or_else(Content::Broken, Content::Read),
        Err(why) => Content::Broken(why),
    };
    NamedFile { path: path.display().to_string(), content }
}

/// The object in a file; `None` when there is no such file.
fn object(path: &Path) -> Result<Option<Map<String, Value>>, String> {
    let mut bytes = Vec::new();
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(found) if !found.is_file() => return Err("it is no regular file".to_owned()),
        _ => {}
    }
    let file = File::open(path).map_err(|error| format!("it cannot be read ({error})"))?;
    let read = file.take(MOST + 1).read_to_end(&mut bytes);
    let length = read.map_err(|error| format!("it cannot be read ({error})"))?;
    if u64::try_from(length).unwrap_or(u64::MAX) > MOST {
        return Err("it is larger than 4 MiB".to_owned());
    }
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(object)) => Ok(Some(object)),
        Ok(_) => Err("it is no JSON object".to_owned()),
        Err(error) => {
            Err(format!("it is no JSON (line {}, column {})", error.line(), error.column()))
        }
    }
}

fn template_of(object: &Map<String, Value>) -> Result<TemplateFile, String> {
    if let Some(key) = object.keys().find(|key| !TEMPLATE_KEYS.contains(&key.as_str())) {
        return Err(format!(
            "the key `{key}` is unknown, and Quark refuses it; it takes {}",
            TEMPLATE_KEYS.map(|key| format!("`{key}`")).join(", ")
        ));
    }
    let model_type = object.get("model_type").and_then(Value::as_str).unwrap_or_default();
    if model_type.is_empty() {
        return Err("`model_type` is missing, or no text".to_owned());
    }
    texts(object, "gate_up_layers_name", false)?;
    Ok(TemplateFile {
        model_type: model_type.to_owned(),
        kv_layers: texts(object, "kv_layers_name", false)?,
        q_layers: texts(object, "q_layer_name", true)?,
        exclude_layers: texts(object, "exclude_layers_name", false)?.unwrap_or_default(),
        algorithms: algorithms(object)?,
    })
}

/// A list of texts under a key; with `alone` a text by itself too.
fn texts(
    object: &Map<String, Value>,
    key: &str,
    alone: bool,
) -> Result<Option<Vec<String>>, String> {
    let list = match object.get(key) {
        None => return Ok(None),
        Some(Value::String(one)) if alone => Some(vec![one.clone()]),
        Some(Value::Array(list)) => {
            list.iter().map(|one| one.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        }
        Some(_) => None,
    };
    match list {
        Some(list) if list.len() > ENTRIES => {
            Err(format!("`{key}` has more than {ENTRIES} entries"))
        }
        Some(list) => Ok(Some(list)),
        None => Err(format!("`{key}` is no list of texts")),
    }
}

/// The algorithms of a template, each with its config.
fn algorithms(object: &Map<String, Value>) -> Result<Vec<String>, String> {
    let configs = match object.get("algorithm_configs") {
        None => return Ok(Vec::new()),
        Some(Value::Object(configs)) => configs,
        Some(_) => return Err("`algorithm_configs` is no JSON object".to_owned()),
    };
    let mut found = Vec::new();
    for (key, config) in configs {
        let name = config.as_object().map(named).transpose()?;
        let key = key.to_lowercase();
        match name {
            None => return Err(format!("`algorithm_configs.{key}` is no JSON object")),
            Some(name) if name != key => {
                return Err(format!("`algorithm_configs.{key}` is a config of `{name}`"));
            }
            Some(name) => found.push(name),
        }
    }
    Ok(found)
}

/// The algorithm of a config, as the command line calls it.
fn named(config: &Map<String, Value>) -> Result<String, String> {
    let name = config.get("name").and_then(Value::as_str);
    let name = name.ok_or("`name` is missing, or no text")?.to_lowercase();
    let other = RENAMED.iter().find(|(inside, _)| *inside == name);
    Ok(other.map_or(name, |(_, outside)| (*outside).to_owned()))
}

fn algorithm_of(object: &Map<String, Value>) -> Result<AlgorithmFile, String> {
    let mut file = AlgorithmFile { name: named(object)?, ..AlgorithmFile::default() };
    let decoder = object.get("model_decoder_layers").and_then(Value::as_str);
    file.decoder_layers = decoder.filter(|path| !path.is_empty()).map(str::to_owned);
    file.layers = texts(object, "inside_layer_modules", false)?.unwrap_or_default();
    // Those of `rotation` are an object, with whole names.
    if let Some(Value::Array(groups)) = object.get("scaling_layers") {
        for group in groups {
            let group = group.as_object().ok_or("`scaling_layers` holds what is no JSON object")?;
            let layers = texts(group, "layers", false)?;
            file.layers.extend(layers.ok_or("`scaling_layers` has an entry without `layers`")?);
        }
    }
    let mut known = BTreeSet::new();
    file.layers.retain(|layer| known.insert(layer.clone()));
    if file.layers.len() > ENTRIES {
        return Err(format!("it names more than {ENTRIES} layers"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: std::fmt::Debug + PartialEq>(
        of: fn(&Path) -> NamedFile<T>,
        text: &str,
        expected: Result<T, &str>,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.json");
        std::fs::write(&path, text).unwrap();
        let read = match of(&path).content {
            Content::Read(read) => Ok(read),
            Content::Broken(why) => Err(why),
            Content::Missing => Err("it is missing".to_owned()),
        };
        match expected {
            Ok(expected) => assert_eq!(read, Ok(expected), "{text}"),
            Err(expected) => {
                assert!(read.as_ref().is_err_and(|why| why.contains(expected)), "{text}: {read:?}");
            }
        }
    }

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_template_is_read_as_quark_reads_it() {
        let whole = TemplateFile {
            model_type: "olmo2".to_owned(),
            kv_layers: Some(owned(&["*k_proj", "*v_proj"])),
            q_layers: Some(owned(&["*q_proj"])),
            exclude_layers: owned(&["lm_head"]),
            algorithms: owned(&["awq", "smoothquant"]),
        };
        check(
            template,
            r#"{"model_type": "olmo2", "kv_layers_name": ["*k_proj", "*v_proj"],
                "q_layer_name": "*q_proj", "exclude_layers_name": ["lm_head"],
                "algorithm_configs": {"AWQ": {"name": "awq"}, "smoothquant": {"name": "smooth"}}}"#,
            Ok(whole),
        );
        let least = TemplateFile { model_type: "olmo2".to_owned(), ..TemplateFile::default() };
        check(template, r#"{"model_type": "olmo2"}"#, Ok(least));
        for (text, why) in [
            ("{", "it is no JSON (line 1"),
            ("[]", "it is no JSON object"),
            ("{}", "`model_type` is missing"),
            (r#"{"model_type": "a", "exclude_layers": []}"#, "the key `exclude_layers` is unknown"),
            (r#"{"model_type": "a", "kv_layers_name": "k"}"#, "`kv_layers_name` is no list"),
            (
                r#"{"model_type": "a", "algorithm_configs": {"awq": {"name": "gptq"}}}"#,
                "`algorithm_configs.awq` is a config of `gptq`",
            ),
        ] {
            check(template, text, Err(why));
        }
    }

    #[test]
    fn a_config_of_an_algorithm_names_the_layers_that_it_works_on() {
        check(
            algorithm,
            r#"{"name": "smooth", "model_decoder_layers": "model.layers", "scaling_layers": [
                {"prev_op": "ln", "layers": ["attn.q", "attn.k"], "inp": "attn.q"},
                {"prev_op": "up", "layers": ["down", "attn.q"], "inp": "down"}]}"#,
            Ok(AlgorithmFile {
                name: "smoothquant".to_owned(),
                decoder_layers: Some("model.layers".to_owned()),
                layers: owned(&["attn.q", "attn.k", "down"]),
            }),
        );
        let gptq = AlgorithmFile {
            name: "gptq".to_owned(),
            decoder_layers: None,
            layers: owned(&["mlp.up"]),
        };
        check(
            algorithm,
            r#"{"name": "gptq", "model_decoder_layers": "", "inside_layer_modules": ["mlp.up"]}"#,
            Ok(gptq),
        );
        check(algorithm, r#"{"alpha": 1}"#, Err("`name` is missing"));
        check(algorithm, r#"{"name": "awq", "scaling_layers": [{}]}"#, Err("without `layers`"));
        assert_eq!(algorithm(Path::new("/nowhere/x.json")).content, Content::Missing);
    }
}
