//! Fields read for what they are worth: a value of an unexpected type in a field that servers fill
//! freely must not turn a good chunk into a bad payload.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A value reduced to whether it carries anything: a non-empty string, list or object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filled(pub(crate) bool);

/// A string or number as text of bounded length; anything else is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text<const MAX: usize>(pub(crate) Option<String>);

/// A non-negative integer; anything else is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) Option<u64>);

macro_rules! scalar {
    ($name:ident, $input:ty) => {
        fn $name<E>(self, value: $input) -> Result<Self::Value, E> {
            Ok(self.scalar(Scalar::from(value)))
        }
    };
}

/// A scalar JSON value, borrowed for the length of one visit.
pub(crate) enum Scalar<'a> {
    Null,
    Bool,
    Unsigned(u64),
    Other(String),
    Text(&'a str),
}

impl From<bool> for Scalar<'_> {
    fn from(_: bool) -> Self {
        Self::Bool
    }
}

impl From<u64> for Scalar<'_> {
    fn from(value: u64) -> Self {
        Self::Unsigned(value)
    }
}

impl From<i64> for Scalar<'_> {
    fn from(value: i64) -> Self {
        u64::try_from(value).map_or_else(|_| Self::Other(value.to_string()), Self::Unsigned)
    }
}

impl From<f64> for Scalar<'_> {
    fn from(value: f64) -> Self {
        Self::Other(value.to_string())
    }
}

impl<'a> From<&'a str> for Scalar<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

/// How a loose type reads each shape of value.
pub(crate) trait Loose: Sized {
    fn scalar(value: Scalar<'_>) -> Self;
    /// A list or object; `filled` when it has elements.
    fn compound(filled: bool) -> Self;
}

impl Loose for Filled {
    fn scalar(value: Scalar<'_>) -> Self {
        Self(matches!(value, Scalar::Text(text) if !text.is_empty()))
    }

    fn compound(filled: bool) -> Self {
        Self(filled)
    }
}

impl<const MAX: usize> Loose for Text<MAX> {
    fn scalar(value: Scalar<'_>) -> Self {
        Self(match value {
            Scalar::Null | Scalar::Bool => None,
            Scalar::Unsigned(number) => Some(number.to_string()),
            Scalar::Other(text) => Some(text),
            // Characters are bytes or more.
            Scalar::Text(text) if text.len() <= MAX => Some(text.to_owned()),
            Scalar::Text(text) => Some(text.chars().take(MAX).collect()),
        })
    }

    fn compound(_: bool) -> Self {
        Self(None)
    }
}

impl Loose for Count {
    fn scalar(value: Scalar<'_>) -> Self {
        Self(if let Scalar::Unsigned(number) = value { Some(number) } else { None })
    }

    fn compound(_: bool) -> Self {
        Self(None)
    }
}

struct LooseVisitor<T>(std::marker::PhantomData<T>);

impl<T: Loose> LooseVisitor<T> {
    fn scalar(self, value: Scalar<'_>) -> T {
        T::scalar(value)
    }
}

impl<'de, T: Loose> Visitor<'de> for LooseVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    scalar!(visit_bool, bool);
    scalar!(visit_u64, u64);
    scalar!(visit_i64, i64);
    scalar!(visit_f64, f64);
    scalar!(visit_str, &str);

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::scalar(Scalar::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<T, A::Error> {
        let mut filled = false;
        while list.next_element::<IgnoredAny>()?.is_some() {
            filled = true;
        }
        Ok(T::compound(filled))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut filled = false;
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            filled = true;
        }
        Ok(T::compound(filled))
    }
}

macro_rules! deserialize_loosely {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<'de, $($generics)*> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(LooseVisitor(std::marker::PhantomData))
            }
        }
    )*};
}

deserialize_loosely! {
    [] Filled;
    [const MAX: usize] Text<MAX>;
    [] Count;
}
