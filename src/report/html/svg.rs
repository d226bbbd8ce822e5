//! From plotters to a picture of the page: its colours become classes, which the style sheet fills for light, dark and
//! paper; the picture gets its text alternative.

use maud::{Markup, PreEscaped, html};
use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Polygon, Rectangle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, IntoFont, RGBColor, ShapeStyle};

/// What is drawn on.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Drawing into memory.
pub(super) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// A place in the picture, in its pixels.
pub(super) type Place = (i32, i32);

/// A colour by what it means. The values only tell the inks apart until they are classes; they are what shows where no
/// style sheet is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    Text,
    Faint,
    Axis,
    Grid,
    Good,
    Bad,
    Better,
    Unsure,
    Heat,
    Mark,
}

impl Ink {
    const ALL: [Self; 10] = [
        Self::Text,
        Self::Faint,
        Self::Axis,
        Self::Grid,
        Self::Good,
        Self::Bad,
        Self::Better,
        Self::Unsure,
        Self::Heat,
        Self::Mark,
    ];

    pub(super) fn color(self) -> RGBColor {
        match self {
            Self::Text => RGBColor(0x1A, 0x1A, 0x1A),
            Self::Faint => RGBColor(0x59, 0x59, 0x59),
            Self::Axis => RGBColor(0x6B, 0x6B, 0x6B),
            Self::Grid => RGBColor(0xE2, 0xE2, 0xE2),
            Self::Good => RGBColor(0x00, 0x72, 0xB2),
            Self::Bad => RGBColor(0xB8, 0x49, 0x00),
            Self::Better => RGBColor(0x00, 0x7A, 0x5A),
            Self::Unsure => RGBColor(0x9C, 0x4F, 0x80),
            Self::Heat => RGBColor(0xE6, 0x9F, 0x00),
            Self::Mark => RGBColor(0x1B, 0x1B, 0x1B),
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Faint => "faint",
            Self::Axis => "axis",
            Self::Grid => "grid",
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Better => "better",
            Self::Unsure => "unsure",
            Self::Heat => "heat",
            Self::Mark => "mark",
        }
    }

    pub(super) fn line(self, width: u32) -> ShapeStyle {
        ShapeStyle { color: self.color().to_rgba(), filled: false, stroke_width: width }
    }

    pub(super) fn fill(self) -> ShapeStyle {
        self.color().filled()
    }
}

/// Which way a text goes from its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Middle,
    Right,
}

/// Writes a line of text, vertically centred at the place.
pub(super) fn write(area: &Area, text: &str, ink: Ink, side: Side, bold: bool, at: Place) -> Drawn {
    let along = match side {
        Side::Left => HPos::Left,
        Side::Middle => HPos::Center,
        Side::Right => HPos::Right,
    };
    // 12 pixels: plotters divides by 1.24.
    let font = ("sans-serif", 14.9).into_font();
    let font = if bold { font.style(FontStyle::Bold) } else { font };
    let style = font.color(&ink.color()).pos(Pos::new(along, VPos::Center));
    area.draw_text(text, &style, at)
}

/// Draws a line.
pub(super) fn stroke(area: &Area, ink: Ink, width: u32, points: Vec<Place>) -> Drawn {
    area.draw(&PathElement::new(points, ink.line(width)))
}

/// Fills a box.
pub(super) fn fill(area: &Area, ink: Ink, alpha: f64, corners: [Place; 2]) -> Drawn {
    area.draw(&Rectangle::new(corners, ink.color().mix(alpha).filled()))
}

/// The shape that says a verdict without its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Circle,
    Triangle,
    Diamond,
    Square,
    Cross,
}

/// Draws a mark; one that is not filled tells a boot of the confirmation.
pub(super) fn mark(area: &Area, (shape, ink): (Shape, Ink), size: i32, filled: bool, at: Place) -> Drawn {
    let (x, y) = at;
    let corners = match shape {
        Shape::Circle => {
            let style = if filled { ink.fill() } else { ink.line(1) };
            return area.draw(&Circle::new(at, size, style));
        }
        Shape::Cross => {
            stroke(area, ink, 2, vec![(x - size, y - size), (x + size, y + size)])?;
            return stroke(area, ink, 2, vec![(x - size, y + size), (x + size, y - size)]);
        }
        Shape::Triangle => vec![(x - size - 1, y + size), (x, y - size - 1), (x + size + 1, y + size)],
        Shape::Diamond => vec![(x - size - 1, y), (x, y - size - 1), (x + size + 1, y), (x, y + size + 1)],
        Shape::Square => {
            vec![(x - size, y - size), (x + size, y - size), (x + size, y + size), (x - size, y + size)]
        }
    };
    if filled {
        return area.draw(&Polygon::new(corners, ink.fill()));
    }
    let closed: Vec<Place> = corners.iter().chain(corners.first()).copied().collect();
    stroke(area, ink, 1, closed)
}

/// A picture with its text alternative: what it shows, and what there is to see.
pub(super) struct Told {
    pub(super) id: &'static str,
    pub(super) title: String,
    pub(super) desc: String,
}

/// Draws a picture.
pub(super) fn picture(told: &Told, size: (u32, u32), paint: impl FnOnce(&Area) -> Drawn) -> Markup {
    let mut drawn = String::new();
    {
        let area = SVGBackend::with_string(&mut drawn, size).into_drawing_area();
        paint(&area)
            .and_then(|()| area.present())
            .expect("it is drawn into memory, with no font to look for");
    }
    let (title, desc) = (format!("{}-title", told.id), format!("{}-desc", told.id));
    let labels = format!("{title} {desc}");
    let view = format!("0 0 {} {}", size.0, size.1);
    html! {
        svg role="img" aria-labelledby=(labels) viewBox=(view) width=(size.0) height=(size.1) {
            title id=(title) { (told.title) }
            desc id=(desc) { (told.desc) }
            (PreEscaped(dressed(&drawn)))
        }
    }
}

/// What plotters drew, without its frame, with classes for colours.
fn dressed(drawn: &str) -> String {
    let inside = drawn.split_once('>').map_or("", |(_, rest)| rest);
    let mut inside = inside.rsplit_once("</svg>").map_or(inside, |(inside, _)| inside).to_owned();
    for ink in Ink::ALL {
        let RGBColor(r, g, b) = ink.color();
        let color = format!("#{r:02X}{g:02X}{b:02X}");
        for (attribute, letter) in [("fill", 'f'), ("stroke", 's')] {
            let class = format!(" class=\"{letter}-{}\"", ink.class());
            inside = inside.replace(&format!(" {attribute}=\"{color}\""), &class);
        }
    }
    for needless in
        [" font-family=\"sans-serif\"", " opacity=\"1\"", " stroke=\"none\"", " stroke-width=\"1\""]
    {
        inside = inside.replace(needless, "");
    }
    inside.replace("\n</text>", "</text>").replace(">\n<", "><")
}
