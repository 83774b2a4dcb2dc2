//! Checks `extra_options`: keys, types, ranges and choices, in blocks such as `FastFinetune` too. The library
//! ignores what it does not know, so a misspelled key would silently be lost.

use serde_json::{Map, Value};

use crate::{
    catalogue::{
        Entry,
        options::{ExtraOption, OptionType},
        releases::Release,
    },
    rules::{
        Context,
        request::Defect,
        sheet::{list, show},
    },
    vocab::{OptionId, near_names},
};

/// Every defect of the options.
pub fn defects(ctx: &Context<'_>, release: &Release, given: &Map<String, Value>) -> Vec<Defect> {
    let mut defects = Vec::new();
    for (key, value) in given {
        match ctx.catalogue.options().get(key).filter(|option| option.is_top_level()) {
            Some(option) => one(ctx, release, option, None, value, &mut defects),
            None => defects.push(unknown(ctx, key, None)),
        }
    }
    defects
}

fn unknown(ctx: &Context<'_>, key: &str, block: Option<&OptionId>) -> Defect {
    let fits = |option: &&ExtraOption| match block {
        Some(block) => option.parents.contains(block),
        None => option.is_top_level(),
    };
    let known = ctx.catalogue.options().all().iter().filter(fits).map(|option| option.id.as_str());
    let near = near_names(key, known.clone());
    let place = block.map_or("`extra_options`".to_owned(), |block| format!("`{block}`"));
    let elsewhere = ctx
        .catalogue
        .options()
        .get(key)
        .filter(|option| block.is_none() && !option.parents.is_empty());
    let hint = if let Some(option) = elsewhere {
        format!("it stands inside {}", list(option.parents.iter().map(OptionId::as_str), 3))
    } else if !near.is_empty() {
        format!("did you mean {}?", list(near, 3))
    } else if block.is_some() {
        format!("choose one of {}", list(known, 12))
    } else {
        "look the options up with `explain`".to_owned()
    };
    Defect::new(format!("{place} has no key `{key}`; Quark would ignore it silently")).hint(hint)
}

fn one(
    ctx: &Context<'_>,
    release: &Release,
    option: &ExtraOption,
    block: Option<&OptionId>,
    value: &Value,
    defects: &mut Vec<Defect>,
) {
    let name = block.map_or(option.id.to_string(), |block| format!("{block}.{}", option.id));
    if !ctx.catalogue.in_release(option, &release.id) {
        let with = ctx.catalogue.releases_with(option);
        defects.push(
            Defect::new(format!("amd-quark {} has no extra option `{name}`", release.id()))
                .hint(format!("it is in {}", list(with.iter().map(|id| id.as_str()), 5))),
        );
        return;
    }
    let choices = option.choices_in(block);
    if value.is_null() || choices.contains(value) {
        return;
    }
    if !choices.is_empty() {
        let shown = choices.iter().map(show).collect::<Vec<_>>().join(", ");
        defects.push(
            Defect::new(format!("`{name}` cannot be {}", show(value)))
                .hint(format!("choose one of {shown}")),
        );
        return;
    }
    let numbers =
        |value: &Value| value.as_array().is_some_and(|items| items.iter().all(Value::is_number));
    let texts =
        |value: &Value| value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
    let expected = match option.r#type {
        OptionType::Bool if !value.is_boolean() => "true or false",
        OptionType::Int if !(value.is_i64() || value.is_u64()) => "a whole number",
        OptionType::Float if !value.is_number() => "a number",
        OptionType::Text if !value.is_string() => "text",
        OptionType::TextList if !texts(value) => "a list of texts",
        OptionType::NumberList if !numbers(value) => "a list of numbers",
        OptionType::List if !value.is_array() => "a list",
        OptionType::Object if !value.is_object() => "an object",
        OptionType::Python => {
            defects.push(
                Defect::new(format!(
                    "`{name}` takes a value that only Python can express, so a plan cannot hold it"
                ))
                .hint("set it in the script that runs the plan"),
            );
            return;
        }
        _ => "",
    };
    if !expected.is_empty() {
        defects.push(Defect::new(format!("`{name}` takes {expected}, not {}", show(value))));
        return;
    }
    if let Some(number) = value.as_f64() {
        let low = option.min.filter(|min| number < *min).map(|min| format!("at least {min}"));
        let high = option.max.filter(|max| number > *max).map(|max| format!("at most {max}"));
        if let Some(bound) = low.or(high) {
            defects.push(Defect::new(format!("`{name}` is {number}, but must be {bound}")));
        }
    }
    let has_keys = |id: &OptionId| {
        ctx.catalogue.options().all().iter().any(|option| option.parents.contains(id))
    };
    if let (Value::Object(inside), true) = (value, has_keys(&option.id)) {
        for (key, value) in inside {
            match ctx
                .catalogue
                .options()
                .get(key)
                .filter(|inner| inner.parents.contains(&option.id))
            {
                Some(inner) => one(ctx, release, inner, Some(&option.id), value, defects),
                None => defects.push(unknown(ctx, key, Some(&option.id))),
            }
        }
    }
}
