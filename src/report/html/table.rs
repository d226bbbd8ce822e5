//! Tables: each with a caption, scopes, and a box that is scrolled by keyboard where the page is narrow.

use maud::{Markup, html};

/// A column.
pub(super) enum Column {
    /// Text.
    Text(&'static str),
    /// Text that is not broken into lines.
    Short(&'static str),
    /// Text that wants room.
    Wide(&'static str),
    /// Numbers, at the right.
    Number(String),
}

impl Column {
    /// A column of numbers.
    pub(super) fn number(head: &str) -> Self {
        Self::Number(head.to_owned())
    }

    fn head(&self) -> &str {
        match self {
            Self::Text(head) | Self::Short(head) | Self::Wide(head) => head,
            Self::Number(head) => head,
        }
    }

    fn class(&self) -> Option<&'static str> {
        match self {
            Self::Text(_) => None,
            Self::Short(_) => Some("short"),
            Self::Wide(_) => Some("wide"),
            Self::Number(_) => Some("n"),
        }
    }
}

/// A row: its class, and a cell for each column; the first is its head.
pub(super) struct Row {
    pub(super) class: &'static str,
    pub(super) cells: Vec<Markup>,
}

impl Row {
    /// A row that is like the others.
    pub(super) fn plain(cells: Vec<Markup>) -> Self {
        Self { class: "", cells }
    }
}

/// Draws a table.
pub(super) fn table(id: &str, caption: &str, columns: &[Column], rows: &[Row]) -> Markup {
    let named = format!("{id}-caption");
    let tall = if rows.len() > 40 { "box tall" } else { "box" };
    html! {
        div class=(tall) role="region" tabindex="0" aria-labelledby=(named) {
            table id=(id) {
                caption id=(named) { (caption) }
                thead { tr {
                    @for column in columns { th scope="col" class=[column.class()] { (column.head()) } }
                } }
                tbody {
                    @for row in rows {
                        tr class=[(!row.class.is_empty()).then_some(row.class)] {
                            @for (at, (cell, column)) in row.cells.iter().zip(columns).enumerate() {
                                @if at == 0 { th scope="row" { (cell) } } @else { td class=[column.class()] { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What is opened by who wants it; on paper it is open.
pub(super) fn folded(summary: &str, inside: &Markup) -> Markup {
    html! { details { summary { (summary) } (inside) } }
}

/// Key and words, one pair a line.
pub(super) fn pairs(of: &[(&str, Markup)]) -> Markup {
    html! { dl class="pairs" { @for (key, words) in of { dt { (key) } dd { (words) } } } }
}
