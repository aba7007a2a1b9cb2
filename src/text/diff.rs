/// A unified diff with three lines of context and `a/`, `b/` headers; empty when the texts are equal.
/// A missing newline at the end of a file is marked as `diff` does.
pub fn unified_diff(file: &str, old: &str, new: &str) -> String {
    todo!()
}
