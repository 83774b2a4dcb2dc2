//! Rules for both halves of Quark.
