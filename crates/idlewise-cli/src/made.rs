//! What made a result, so that it can be made again: the version, the command and its seed.

use std::ffi::OsString;
use std::sync::{LazyLock, OnceLock};

use clap::ArgMatches;
use serde::Serialize;
use serde_json::{Map, Value};

/// The version, and the commit where the build was told of it: `make` does so in a git checkout.
pub static VERSION: LazyLock<String> = LazyLock::new(|| {
    let commit = option_env!("IDLEWISE_COMMIT").filter(|commit| !commit.is_empty());
    let version = env!("CARGO_PKG_VERSION");
    commit.map_or(version.to_owned(), |commit| format!("{version} ({commit})"))
});

static MADE: OnceLock<Made> = OnceLock::new();

/// How this process was called.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Made {
    version: String,
    command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

/// Keeps how this process was called, for every result.
pub fn remember(arguments: &[OsString], matches: &ArgMatches) {
    let command = arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
    let made = Made { version: VERSION.clone(), command: command.collect(), seed: seed(matches) };
    idlewise::report::made_by(&format!("idlewise {}: {}", made.version, made.command.join(" ")));
    // It is called once.
    let _ = MADE.set(made);
}

/// The seed of the subcommand, given or not, where it has one.
fn seed(matches: &ArgMatches) -> Option<u64> {
    if let Some((_, inner)) = matches.subcommand() {
        return seed(inner);
    }
    matches.try_get_one::<u64>("seed").ok().flatten().copied()
}

/// The value with a member `idlewise` that says what made it; a list has it in each of its objects.
pub fn stamped(value: Value) -> serde_json::Result<Value> {
    let Some(made) = MADE.get() else { return Ok(value) };
    Ok(stamp(value, &serde_json::to_value(made)?))
}

fn stamp(value: Value, made: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let first = std::iter::once(("idlewise".to_owned(), made.clone()));
            Value::Object(first.chain(members).collect::<Map<_, _>>())
        }
        Value::Array(list) => list.into_iter().map(|item| stamp(item, made)).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_stamped_before_all_else() {
        let made = json!({"version": "1"});
        assert_eq!(
            stamp(json!({"b": 1, "a": [{}]}), &made).to_string(),
            r#"{"idlewise":{"version":"1"},"b":1,"a":[{}]}"#
        );
        assert_eq!(stamp(json!([{}, 2]), &made), json!([{"idlewise": made}, 2]));
    }
}
