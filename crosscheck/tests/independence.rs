//! What is computed a second time must not share the first computation's faults.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

#[test]
fn no_crate_of_the_workspace_is_in_the_dependency_tree() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let members: BTreeSet<String> =
        metadata["workspace_members"].as_array().unwrap().iter().map(text).collect();
    let nodes: BTreeMap<String, Vec<String>> = metadata["resolve"]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| {
            (text(&node["id"]), node["dependencies"].as_array().unwrap().iter().map(text).collect())
        })
        .collect();
    let own = members.iter().find(|id| id.contains("/crosscheck#")).unwrap();
    let (mut tree, mut todo) = (BTreeSet::new(), vec![own.clone()]);
    while let Some(id) = todo.pop() {
        if tree.insert(id.clone()) {
            todo.extend(nodes[&id].iter().cloned());
        }
    }
    assert!(tree.len() > 3, "{tree:?}");
    let shared: Vec<&String> = tree.intersection(&members).collect();
    assert_eq!(shared, [own]);
}
