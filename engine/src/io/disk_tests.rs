//! The real directory: what `io/mod.rs` promises, as far as it can be seen without a power cut.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use super::*;

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn a_created_file_has_its_zeros_and_its_name_once() {
    let dir = scratch();
    let storage = DiskStorage::open(dir.path()).unwrap();
    let file = storage.create("a", 3 << 20).unwrap();
    assert_eq!(file.len().unwrap(), 3 << 20);
    let mut tail = [1_u8; 16];
    file.read_at((3 << 20) - 16, &mut tail).unwrap();
    assert_eq!(tail, [0; 16]);
    assert_eq!(storage.create("a", 0).unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(storage.list().unwrap(), [("a".to_owned(), 3 << 20)]);
}

#[test]
fn a_vectored_write_puts_more_pieces_than_one_call_takes_one_behind_the_other() {
    let dir = scratch();
    let storage = DiskStorage::open(dir.path()).unwrap();
    let file = storage.create("a", 0).unwrap();
    let texts: Vec<String> = (0..3000).map(|i| "x".repeat(i % 7) + &i.to_string()).collect();
    let pieces: Vec<IoSlice<'_>> = texts.iter().map(|t| IoSlice::new(t.as_bytes())).collect();
    file.write_vectored_at(5, &pieces).unwrap();
    let expected = texts.concat();
    let mut found = vec![0; expected.len()];
    file.read_at(5, &mut found).unwrap();
    assert_eq!(found, expected.as_bytes());
    assert_eq!(file.len().unwrap(), 5 + expected.len() as u64);
}

#[test]
fn a_removed_or_replaced_file_stays_readable_to_who_holds_it() {
    let dir = scratch();
    let storage = DiskStorage::open(dir.path()).unwrap();
    storage.write_atomic("a", b"old").unwrap();
    let old = storage.open("a").unwrap().section(0, 3).unwrap();
    storage.write_atomic("a", b"new!").unwrap();
    assert_eq!(&*old, b"old");
    assert!(old.is_mapped());
    let new = storage.open("a").unwrap();
    storage.remove("a").unwrap();
    assert_eq!(&*new.section(1, 3).unwrap(), b"ew!");
    assert_eq!(new.section(1, 4).unwrap_err().kind(), ErrorKind::Io);
    assert!(!storage.exists("a").unwrap());
    assert_eq!(storage.open("a").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(storage.remove("a").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn names_that_leave_the_directory_are_refused() {
    let dir = scratch();
    let storage = DiskStorage::open(dir.path()).unwrap();
    for name in ["", ".", "..", "../x", "a/b", ".hidden", "a\0b"] {
        assert_eq!(storage.create(name, 0).unwrap_err().kind(), ErrorKind::InvalidInput, "{name:?}");
    }
}

#[test]
fn a_second_opener_is_told_who_has_the_directory() {
    let dir = scratch();
    let path = dir.path().join("made/here");
    let first = DiskStorage::open(&path).unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for way in [path.clone(), link, dir.path().join("made/../made/here")] {
        let error = DiskStorage::open(&way).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.message().contains(&format!("in use by pid {}", std::process::id())), "{error}");
        assert!(error.message().contains("made/here"), "{error}");
    }
    drop(first);
    DiskStorage::open(&path).unwrap();
}

/// Another process holds the lock as `flock(1)` does; here a lock on a description of its own stands for it, under
/// which the registry of this process knows nothing.
#[test]
fn a_lock_of_another_process_names_its_pid_and_a_stale_file_does_not_matter() {
    let dir = scratch();
    let path = dir.path().join(LOCK_FILE);
    fs::write(&path, "pid 4711\n").unwrap();
    let other = fs::File::open(&path).unwrap();
    other.try_lock().unwrap();
    let error = DiskStorage::open(dir.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.message().contains("in use by pid 4711"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "pid 4711\n");
    drop(other);
    let _ours = DiskStorage::open(dir.path()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("pid {}\n", std::process::id()));
}

#[test]
fn a_directory_that_cannot_be_made_is_named_with_its_owners() {
    let dir = scratch();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = DiskStorage::open(file.join("below")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("file"), "{error}");
    // Root may write anywhere, so the refusal itself is asked for its words.
    let error = refused(&dir.path().join("no/such"), "cannot create", io::ErrorKind::PermissionDenied.into());
    let owner = fs::metadata(dir.path()).unwrap();
    assert!(error.message().contains(&format!("belongs to {}:{}", owner.uid(), owner.gid())), "{error}");
    assert!(error.message().contains("chown -R"), "{error}");
}

#[test]
fn a_file_that_may_not_be_read_is_named_with_the_remedy() {
    let dir = scratch();
    let file = dir.path().join("0001.qseg");
    fs::write(&file, "").unwrap();
    let shown = file.display().to_string();
    let error = refused_file(&file, "cannot open", io::ErrorKind::PermissionDenied.into());
    assert!(error.message().starts_with(&format!("cannot open file {shown}: ")), "{error}");
    assert!(error.message().ends_with(&format!("chmod -R u+rwX {shown}`")), "ours, so its mode is wrong: {error}");
    let error = refused_file(&file, "cannot open", io::ErrorKind::ReadOnlyFilesystem.into());
    assert!(error.message().contains("mounted read-only"), "{error}");
    let error = refused_file(&file, "cannot open", io::ErrorKind::Interrupted.into());
    assert!(error.message().starts_with("cannot open 0001.qseg: "), "{error}");
}

#[test]
fn a_place_holds_something_or_not_or_cannot_be_looked_into() {
    let dir = scratch();
    assert!(!holds_something(dir.path()).unwrap());
    assert!(!holds_something(&dir.path().join("not/there")).unwrap());
    fs::write(dir.path().join("file"), "").unwrap();
    assert!(holds_something(dir.path()).unwrap());
    assert_eq!(holds_something(&dir.path().join("file")).unwrap_err().kind(), ErrorKind::Io);
}
