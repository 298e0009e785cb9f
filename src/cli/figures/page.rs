//! The page as text.

use super::super::stairs::{CELLS, Compared, FINER};
use super::list::{Against, BANDS, BANDS_AT, BANDS_OF, Figure, Panel, RELEASED_CELLS};

/// A page that grows.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
}

impl Page {
    /// Adds a figure: its pictures, what was measured, a row per panel, and how to draw them.
    pub fn figure(&mut self, figure: &Figure, rows: &[Vec<String>]) {
        let Figure { number, title, words, columns, panels, against } = figure;
        self.text += &format!("\n## Figure {number}: {title}\n\n{words}\n\n");
        for (k, line) in panels.chunks(*columns).enumerate() {
            let cells = |of: &dyn Fn(&Panel) -> String| {
                let cells: Vec<_> = line.iter().map(of).collect();
                format!("| {} |\n", cells.join(" | "))
            };
            self.text += &cells(&|panel| format!("![{0}](figures/{1}.png)", panel.caption, panel.file));
            if k == 0 {
                self.text += &format!("|{}\n", " --- |".repeat(line.len()));
            }
            self.text += &cells(&|panel| panel.caption.to_owned());
        }
        let mut head =
            vec!["", "cells", "unknowns", "tiles", "iterations at most", "trapped air over its rest volume"];
        head.extend(match against {
            Against::Nothing => None,
            Against::Heights => Some("height of columns, mean difference from the first, cells"),
            Against::Centroids => {
                Some("floating air: largest distance of its centroid from the first one's within 1 s, cells")
            }
        });
        self.text += "\n";
        self.table(&head, rows);
        self.text += "\n```text\n";
        panels.iter().for_each(|panel| self.text += &format!("{}\n", command(panel)));
        self.text += "```\n";
    }

    fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        self.text += &format!("| {} |\n|{}\n", head.join(" | "), " --- |".repeat(head.len()));
        rows.iter().for_each(|row| self.text += &format!("| {} |\n", row.join(" | ")));
    }

    /// Adds figure 16: by how much heights differ from the first run's.
    pub fn bands(&mut self, off: &[f64]) {
        let (scene, cells, frames) = BANDS_OF;
        self.text += &format!(
            "\n## Figure 16: Bands\n\n`{scene}` with {cells} cells in frame {BANDS_AT}, seen from above as a relief of the \
             columns' heights: {}. Under a band that is too thin the seams between tiles show as straight lines and \
             square corners in the craters.\n\n![Three reliefs of two craters](figures/bands.png)\n\n",
            BANDS.map(|(caption, ..)| caption).join(", ")
        );
        let rows = BANDS
            .iter()
            .zip(off)
            .skip(1)
            .map(|((caption, ..), off)| vec![(*caption).to_owned(), format!("{off:.2}")]);
        let head = format!("height of columns, mean difference from the first over {frames} frames, cells");
        self.table(&["", &head], &rows.collect::<Vec<_>>());
    }

    /// Adds the balls that are let go: scene, model, acceleration over g, and what theory says.
    pub fn released(&mut self, found: &[(&str, &str, f64, f64)]) {
        let [flat, space] = RELEASED_CELLS;
        self.text += &format!(
            "\n## Balls let go\n\nHow a ball starts from rest, with {flat} cells in 2D and {space} in 3D: added-mass theory \
             knows, for water without walls. Upwards, over g, after one substep of a millisecond.\n\n"
        );
        let rows = found.iter().map(|(scene, model, found, theory)| {
            let off = 100.0 * (found / theory - 1.0);
            vec![
                format!("`{scene}`"),
                (*model).to_owned(),
                format!("{found:.3}"),
                format!("{theory:.3}"),
                format!("{off:+.1} %"),
            ]
        });
        self.table(&["scene", "model", "measured", "theory", "off"], &rows.collect::<Vec<_>>());
        self.text += "\n```text\nglug run released_heavy_bubble --cells 64 --model affine-bubbles --set tolerance=1e-9 \
                      --fps 1000 --frames 1 --stats first.jsonl\n```\n";
    }

    /// Adds cut cells against whole ones.
    pub fn stairs(&mut self, found: &[Compared]) {
        let fine = FINER * CELLS;
        self.text += &format!(
            "\n## Cut cells against stairs\n\nFigures 2 and 4 of Batty, Bertails and Bridson (2007): solids that cut the \
             cells of a coarse grid ({CELLS} × {CELLS}) bring its flow closer to that of a grid {FINER} times finer \
             ({fine} × {fine}) than solids of whole cells, `--set walls=voxel`. Velocities away from solids: root of \
             the mean square difference, over that of the fine ones.\n\n"
        );
        let rows = found.iter().map(|compared| {
            vec![
                compared.flow.to_owned(),
                compared.walls.to_owned(),
                format!("{:.1} %", 100.0 * compared.velocities),
                format!("{:+.1} %", 100.0 * compared.energy),
            ]
        });
        let head = ["flow", "solids", "velocities off", "kinetic energy off"];
        self.table(&head, &rows.collect::<Vec<_>>());
    }

    /// Adds a table of speeds.
    pub fn speed(&mut self, number: &str, scene: &str, cells: usize, table: &str) {
        self.text += &format!(
            "\n## Figure {number}: how fast\n\nThe next substep of the same state, by every model and preconditioner. \
             Ratios are to the first line, and to the first diagonal one below it.\n\n\
             ```text\nglug bench --state {scene} --cells {cells}\n\n{}```\n",
            table.lines().map(|line| format!("{}\n", line.trim_end())).collect::<String>()
        );
    }

    /// The whole page.
    pub fn finish(self) -> String {
        let opening = "# Figures\n\nWhat the figures of *Constraint Bubbles and Affine Regions* (Goldade, Aanjaneya and \
                       Batty 2020) show, simulated and measured here. Sizes are smaller than the paper's. Made by \
                       `make figures`; the commands draw single pictures (add `--out FILE.png`).\n";
        format!("{opening}{}", self.text)
    }
}

/// The command that draws a panel.
fn command(panel: &Panel) -> String {
    let drawn = panel.drawn.unwrap_or(panel.frames);
    let mut words = format!("glug render {} --cells {} --frames {drawn}", panel.scene, panel.cells);
    if let Some(model) = panel.model {
        words += &format!(" --model {model}");
    }
    panel.set.iter().for_each(|change| words += &format!(" --set {change}"));
    words + &format!(" --layers {} --plain", panel.layers.join(","))
}

#[cfg(test)]
mod tests {
    use super::super::list::FIGURES;
    use super::*;

    #[test]
    fn the_page_has_every_picture_and_every_command() {
        let mut page = Page::default();
        for figure in FIGURES {
            let rows: Vec<_> = figure.panels.iter().map(|panel| vec![panel.caption.to_owned()]).collect();
            page.figure(figure, &rows);
        }
        page.bands(&[0.0, 0.5, 1.5]);
        page.released(&[("released_bubble", "constraint", 1.97, 2.0)]);
        let compared = Compared { flow: "vortex", walls: "cut cells", velocities: 0.031, energy: -0.02 };
        page.stairs(&[compared]);
        page.speed("14", "splash_tank", 128, "one  \n  two\n");
        let text = page.finish();
        for panel in FIGURES.iter().flat_map(|figure| figure.panels) {
            assert!(text.contains(&format!("(figures/{}.png)", panel.file)), "{panel:?}");
            assert!(text.contains(&command(panel)), "{panel:?}");
        }
        assert!(text.contains("| -1.5 % |") && text.contains("one\n  two\n```") && text.contains("1.50"));
        assert!(text.contains("| vortex | cut cells | 3.1 % | -2.0 % |"));
    }
}
