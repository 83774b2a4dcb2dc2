//! The safetensors files of one model: which there are, which there should be, and whether they agree.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::intake::formats;
use crate::intake::safetensors::problem::Problem;
use crate::intake::safetensors::{Defect, Reader, Tensor};

/// Files whose names end so hold an index.
pub const INDEX: &str = ".safetensors.index.json";

/// Which files make up a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The index, when there is one.
    pub index: Option<String>,
    /// The files, sorted, as they are without an index.
    pub files: Vec<String>,
    /// Shards that their numbering calls for and that are not there.
    pub missing: Vec<String>,
}

/// The weights of a model, by their headers.
#[derive(Debug, Default)]
pub struct Weights {
    /// Tensors of all readable files, in the order of the files.
    pub tensors: Vec<Tensor>,
    /// Files that were looked for.
    pub files: Vec<String>,
    /// Bytes of the files that are there.
    pub file_bytes: u64,
    /// Bytes of all tensors, as the index states them.
    pub stated_bytes: Option<u64>,
    /// Everything that is wrong.
    pub problems: Vec<Problem>,
}

impl Weights {
    /// Files that cannot be used, sorted.
    pub fn unusable(&self) -> Vec<String> {
        let files: BTreeSet<&String> =
            self.problems.iter().filter_map(Problem::unusable_file).collect();
        files.into_iter().cloned().collect()
    }
}

/// Chooses the files of a model among the sorted names of a folder.
///
/// An index decides; else `model.safetensors`, else numbered shards, else every file. `consolidated` files are
/// a second copy of the same weights, and `adapter` files are no model, so both count only when alone.
pub fn plan(names: &[String]) -> Plan {
    let indexes: Vec<&String> = names.iter().filter(|name| name.ends_with(INDEX)).collect();
    let usual = |wanted: &str| names.iter().find(|name| *name == wanted).cloned();
    let index = usual("model.safetensors.index.json").or_else(|| match indexes.as_slice() {
        [only] => Some((*only).clone()),
        _ => None,
    });
    if let Some(single) = usual("model.safetensors") {
        return Plan { index, files: vec![single], missing: Vec::new() };
    }
    let all: Vec<&String> = names.iter().filter(|name| name.ends_with(".safetensors")).collect();
    let is_side = |name: &str| name.starts_with("consolidated") || name.starts_with("adapter");
    let main: Vec<String> =
        all.iter().filter(|name| !is_side(name)).map(|name| (*name).clone()).collect();
    let files = if main.is_empty() { all.into_iter().cloned().collect() } else { main };
    let missing = unnumbered(&files);
    Plan { index, files, missing }
}

/// The shards that `…-00001-of-00004.safetensors` calls for and that are not among the files.
fn unnumbered(files: &[String]) -> Vec<String> {
    /// More than any model has; a larger number is no numbering.
    const MOST: usize = 10_000;
    let mut series: BTreeMap<(&str, &str), BTreeSet<usize>> = BTreeMap::new();
    for file in files {
        let stem = file.strip_suffix(".safetensors").unwrap_or(file);
        let Some((rest, total)) = stem.rsplit_once("-of-") else { continue };
        let Some((prefix, number)) = rest.rsplit_once('-') else { continue };
        if let Ok(number) = number.parse() {
            series.entry((prefix, total)).or_default().insert(number);
        }
    }
    let mut missing = Vec::new();
    for ((prefix, total), found) in series {
        let Some(count) = total.parse::<usize>().ok().filter(|count| *count <= MOST) else {
            continue;
        };
        let width = total.len();
        let absent = (1..=count).filter(|number| !found.contains(number));
        missing.extend(
            absent.map(|number| format!("{prefix}-{number:0width$}-of-{total}.safetensors")),
        );
    }
    missing
}

#[derive(Deserialize)]
struct Index {
    #[serde(default)]
    metadata: Option<IndexMetadata>,
    weight_map: WeightMap,
}

#[derive(Deserialize, Default)]
struct IndexMetadata {
    /// A float in some files.
    #[serde(default)]
    total_size: Option<serde_json::Number>,
}

/// Which file each tensor is in; the files are few, so each is kept once.
#[derive(Default)]
struct WeightMap {
    tensors: Vec<(String, usize)>,
    files: Vec<String>,
}

impl<'de> Deserialize<'de> for WeightMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = WeightMap;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a file for each tensor")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WeightMap, A::Error> {
                let mut found = WeightMap::default();
                let mut places: HashMap<String, usize> = HashMap::new();
                while let Some((tensor, file)) = map.next_entry::<String, Cow<'_, str>>()? {
                    let place = places.get(&*file).copied().unwrap_or_else(|| {
                        found.files.push(file.to_string());
                        places.insert(file.into_owned(), found.files.len() - 1);
                        found.files.len() - 1
                    });
                    found.tensors.push((tensor, place));
                }
                Ok(found)
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// Reads the headers of the files of a plan.
pub fn read(folder: &Path, plan: Plan, reader: &mut Reader) -> Weights {
    let mut weights = Weights { files: plan.files, ..Weights::default() };
    let mut index = None;
    if let Some(file) = plan.index {
        match read_index(folder, &file, reader) {
            Ok(read) => {
                weights.files = read.weight_map.files.clone();
                weights.files.sort();
                let size = read.metadata.unwrap_or_default().total_size;
                weights.stated_bytes =
                    size.and_then(|size| size.as_u64().or(size.as_f64().map(|size| size as u64)));
                index = Some(read.weight_map);
            }
            Err(defect) => weights.problems.push(Problem::Index { file, defect }),
        }
    }
    if index.is_none() {
        weights.problems.extend(plan.missing.into_iter().map(|file| Problem::Missing { file }));
    }
    weights.files.truncate(reader.limits().files);
    // Where the tensors of each file end.
    let mut ends = Vec::new();
    for file in weights.files.clone() {
        if is_plain_name(&file) {
            read_file(folder, file, reader, &mut weights);
        } else {
            weights.problems.push(Problem::Outside { file });
        }
        ends.push(weights.tensors.len());
    }
    let problems = disagreements(index.as_ref(), &weights, &ends);
    weights.problems.extend(problems);
    weights
}

fn read_index(folder: &Path, file: &str, reader: &mut Reader) -> Result<Index, Option<Defect>> {
    let limit = reader.limits().header;
    let source = File::open(folder.join(file)).map_err(|cause| Some(cause.into()))?;
    let mut text = Vec::new();
    source.take(limit + 1).read_to_end(&mut text).map_err(|cause| Some(cause.into()))?;
    if text.len() as u64 > limit {
        return Err(Some(Defect::TooLarge { header: text.len() as u64, limit }));
    }
    reader.also_digest(file, &text);
    serde_json::from_slice(&text).map_err(|_| None)
}

/// A name of a file in the folder, and nothing else.
fn is_plain_name(file: &str) -> bool {
    let mut parts = Path::new(file).components();
    matches!((parts.next(), parts.next()), (Some(std::path::Component::Normal(_)), None))
        && !file.contains(['/', '\\', ':'])
}

/// Adds the tensors of a file; what is wrong goes to the problems.
fn read_file(folder: &Path, file: String, reader: &mut Reader, weights: &mut Weights) {
    let path = folder.join(&file);
    // Opening a pipe would wait for a writer, so the kind comes first.
    let Some(metadata) = path.metadata().ok().filter(std::fs::Metadata::is_file) else {
        weights.problems.push(Problem::Missing { file });
        return;
    };
    let length = metadata.len();
    weights.file_bytes += length;
    let header =
        File::open(&path).map_err(Defect::from).and_then(|source| reader.read(source, length));
    match header {
        Ok(header) => {
            let cut_off = header.defects.iter().any(|one| matches!(one, Defect::CutOff { .. }));
            let count = header.defects.len();
            // That data are missing outweighs the rest.
            let first = header
                .defects
                .into_iter()
                .enumerate()
                .min_by_key(|(at, defect)| (!matches!(defect, Defect::CutOff { .. }), *at));
            if let Some((_, first)) = first {
                weights.problems.push(Problem::Malformed { file, first, count, cut_off });
            }
            weights.tensors.extend(header.tensors);
        }
        Err(_) if is_pointer(&path) => weights.problems.push(Problem::Pointer { file }),
        Err(defect) => weights.problems.push(Problem::Unreadable { file, defect }),
    }
}

fn is_pointer(path: &Path) -> bool {
    let mut head = Vec::new();
    File::open(path).and_then(|file| file.take(64).read_to_end(&mut head)).is_ok()
        && formats::looks_like(&head) == Some(formats::LFS_POINTER)
}

/// Where files and index do not agree; what lies in unusable files is not counted again.
fn disagreements(index: Option<&WeightMap>, weights: &Weights, ends: &[usize]) -> Vec<Problem> {
    // The file of each tensor, and whether the index lists it.
    let mut places: HashMap<&str, (usize, bool)> = HashMap::with_capacity(weights.tensors.len());
    let mut twice: Vec<(&str, usize, usize)> = Vec::new();
    let mut begin = 0;
    for (file, end) in ends.iter().enumerate() {
        for tensor in &weights.tensors[begin..*end] {
            match places.insert(&tensor.name, (file, false)) {
                // Twice in one file is a fault of that file.
                Some((before, _)) if before != file => twice.push((&tensor.name, before, file)),
                _ => {}
            }
        }
        begin = *end;
    }
    let mut problems = Vec::new();
    if let Some((tensor, first, second)) = twice.first() {
        problems.push(Problem::InTwoFiles {
            count: twice.len(),
            tensor: (*tensor).to_owned(),
            first: weights.files[*first].clone(),
            second: weights.files[*second].clone(),
        });
    }
    let Some(index) = index else { return problems };
    let unusable = weights.unusable();
    let is_usable: Vec<bool> =
        index.files.iter().map(|file| unusable.binary_search(file).is_err()).collect();
    let place_of: Vec<Option<usize>> =
        index.files.iter().map(|file| weights.files.binary_search(file).ok()).collect();
    let mut misplaced = Vec::new();
    for (tensor, file) in &index.tensors {
        let found = places.get_mut(tensor.as_str()).map(|(place, listed)| {
            *listed = true;
            *place
        });
        if (found.is_none() || found != place_of[*file]) && is_usable[*file] {
            misplaced.push((tensor, &index.files[*file]));
        }
    }
    let unlisted = places.iter().filter(|(_, (_, listed))| !listed).map(|(tensor, _)| *tensor);
    let (count, first) = unlisted.fold((0, None), |(count, first), tensor| {
        (count + 1, Some(first.map_or(tensor, |first: &str| first.min(tensor))))
    });
    if let Some((tensor, file)) = misplaced.iter().min() {
        problems.push(Problem::NotInShard {
            count: misplaced.len(),
            tensor: (*tensor).clone(),
            file: (*file).clone(),
        });
    }
    if let Some(tensor) = first {
        problems.push(Problem::NotInIndex { count, tensor: tensor.to_owned() });
    }
    problems
}
