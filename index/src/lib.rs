//! Row sets, columns and sorted keys, addressed by row number. It must never know documents, paths or files.
