//! A comparison judged by hand: who is ahead, what is missed.

use super::*;

fn times(millis: f64) -> Times {
    Times::new(vec![(millis * 1e6) as u64])
}

fn compared() -> Matrix {
    let mut matrix = Matrix { title: "by hand".into(), ..Matrix::default() };
    for (name, place) in [(OURS, Place::Ours), ("A", Place::Server), ("B", Place::Server), ("C", Place::InProcess)] {
        matrix.engines.push((name.into(), Some(place), String::new()));
    }
    matrix.line("find", "ms", 6.0, Bound::Floor(4.0));
    matrix.line("count", "ms", 1.0, Bound::Floor(1.15));
    matrix.line("single", "1/s", 1.0, Bound::Open);
    for (row, engine, millis) in [
        ("find", OURS, [10.0, 30.0, 20.0]),
        ("find", "A", [200.0, 200.0, 200.0]),
        ("find", "B", [100.0, 130.0, 110.0]),
        ("find", "C", [1.0, 1.0, 1.0]),
        ("find", PRINT, [5.0, 6.0, 6.0]),
        ("count", OURS, [0.1, 0.1, 0.1]),
        ("count", "A", [0.11, 0.11, 0.11]),
        ("count", HTTP, [0.1, 0.1, 0.1]),
    ] {
        millis.iter().for_each(|m| matrix.add(row, engine, &times(*m)));
    }
    matrix.add_value("single", OURS, 1000.0, &times(1.0));
    matrix.add_value("single", "A", 2000.0, &times(1.0));
    matrix.absent("single", "B", "not built");
    matrix
}

#[test]
fn ours_are_judged_beside_the_best_server_and_the_floor() {
    let matrix = compared();
    // 110 / 20: a process without a socket is no server.
    assert!((matrix.ahead(&matrix.lines[0]) - 5.5).abs() < 1e-9);
    // All at the floor.
    assert!((matrix.ahead(&matrix.lines[1]) - 1.0).abs() < 1e-9);
    // More is better.
    assert!((matrix.ahead(&matrix.lines[2]) - 0.5).abs() < 1e-9);
    assert_eq!(matrix.missed(), ["find", "single"]);
    let (mean, rows) = matrix.mean_ahead();
    assert!(rows == 3 && (mean - (5.5_f64 * 0.5).cbrt()).abs() < 1e-9, "{mean} of {rows}");
}

#[test]
fn the_table_shows_losses_and_absences() {
    let table = compared().table();
    assert!(
        table.contains(
            "| find, ms | 20.0 | 200 | 110 | 1.00 | 6.00 (print floor) | 3.33 | <= 4.00 | 5.50 | >= 6.00 | no |"
        ),
        "{table}"
    );
    assert!(table.contains("| single, 1/s | 1,000 | 2,000 | not built |"), "{table}");
}
