//! Names of attributes that types outside of the workspace commonly have.

/// Attributes of built-in types, of common types of the standard library, and of common protocols.
const COMMON: &str = "acquire add add_argument add_note all any append args as_integer_ratio as_posix astimezone \
    aclose anext asend athrow begin bit_count bit_length capitalize casefold cancel cause center chmod clear close \
    closed code combine commit communicate conjugate connect copy count create critical ctime cursor cwd data date \
    day debug decode default_factory delete denominator difference difference_update dirname discard done \
    elements encode encoding end endswith errno error errors exception exists exit expandtabs expanduser execute \
    extend extendleft extendswith fetchall fetchone fileno filename fill filter find findall finditer flags flush \
    fold format format_map fromhex fromisoformat fromkeys fromtimestamp fullmatch func get get_nowait glob group \
    groupdict groups handle head headers hex hour id imag index info insert intersection intersection_update is_alive \
    is_absolute is_dir is_file is_integer is_set isalnum isalpha isascii isatty isdecimal isdigit isdisjoint \
    isidentifier islower isnumeric isoformat isocalendar isoweekday isprintable isspace issubset issuperset istitle \
    isupper items iterdir join joinpath json key keys keywords kill lastgroup lineno ljust lock log lower lstrip \
    maketrans match maxlen mean message microsecond minute mkdir mode month most_common move_to_end msg name \
    next notify notify_all now number numerator open options parent parents parse parse_args part partition parts \
    path pattern pid poll pop popitem popleft pos post print process purpose put put_nowait query read read_bytes \
    read_text readable readinto readline readlines real reason recv reduce release remove removeprefix \
    removesuffix rename repeat replace reset resolve response result reverse rfind rglob rindex rjust rollback root \
    rotate rpartition rsplit rstrip run search second seconds seek seekable send setdefault set set_result setLevel \
    shape shutdown size sleep sort span split splitlines start start_time startswith stat state status step stop \
    stem strftime strip strptime sub submit subn subtract suffix sum swapcase symmetric_difference tell terminate \
    text throw time timestamp timetuple title to_bytes today tolist total total_seconds touch translate truncate type \
    tzinfo union unlink update upper url utcnow value values wait warn warning weekday width with_suffix \
    with_traceback writable write write_bytes write_text writelines year zfill";

/// Returns whether types outside of the workspace commonly have an attribute of this name. If so,
/// an attribute access says nothing about its type.
pub fn is_common(name: &str) -> bool {
    name.starts_with("__") || COMMON.split_whitespace().any(|one| one == name)
}
