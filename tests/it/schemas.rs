//! The published schemas.

use std::{collections::BTreeSet, fs, path::Path};

use quantplan::schema;

#[test]
fn committed_schemas_are_what_the_types_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let update = std::env::var_os("UPDATE_SCHEMAS").is_some();
    let mut expected = BTreeSet::new();
    for published in schema::ALL {
        let name = format!("{}.schema.json", published.name);
        let path = folder.join(&name);
        expected.insert(name);
        if update {
            fs::write(&path, published.text()).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == published.text(),
            "{} is stale; run the tests once with UPDATE_SCHEMAS=1",
            path.display()
        );
    }
    let found: BTreeSet<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(found, expected, "schemas/ holds the published schemas and nothing else");
}

#[test]
fn every_schema_compiles_and_describes_its_fields() {
    for published in schema::ALL {
        let value: serde_json::Value = serde_json::from_str(&published.text()).unwrap();
        jsonschema::draft202012::new(&value).unwrap();
        let properties = value["properties"].as_object().unwrap();
        for (field, schema) in properties {
            let described = schema.get("description").is_some();
            assert!(described, "`{field}` of {} has no description", published.name);
        }
    }
}
