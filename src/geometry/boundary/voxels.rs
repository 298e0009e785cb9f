//! Solids of whole cells: the way before cells were cut, to compare with.

use crate::geometry::PosedSolid;
use crate::grid::SIDE;
use crate::math::{Real, Vector, power, unflatten};

use super::sample::{NODES, STRIDE, corner_of};
use super::shares::OTHERS;
use super::{BodyShare, Walls};

/// No solid.
const NOTHING: u32 = u32::MAX - 1;

/// Which cells of a block, and of one layer around it, are solid.
pub(super) struct Voxels {
    /// By the lowest corner of the cell: the body that it is part of, [`OTHERS`] for other solids and sides, or [`NOTHING`].
    owner: Vec<u32>,
}

/// Calls `each` with the place in the list and the pose of solids that may matter to a block.
pub(super) fn each_solid_near<'a, const D: usize>(
    walls: &'a Walls<D>,
    centre: &Vector<D>,
    reach: Real,
    time: Real,
    mut each: impl FnMut(usize, PosedSolid<'a, D>),
) {
    for (index, solid) in walls.solids.iter().enumerate().filter(|(_, solid)| solid.may_reach(centre, reach))
    {
        let posed = solid.at(time);
        if posed.distance(centre) <= reach {
            each(index, posed);
        }
    }
}

impl Voxels {
    /// A cell is part of the solid that its centre is in, the deepest if there are several.
    pub fn new<const D: usize>(
        walls: &Walls<D>,
        centre: &Vector<D>,
        reach: Real,
        time: Real,
        centre_of: impl Fn(usize) -> Vector<D>,
    ) -> Self {
        let count = power(NODES, D);
        let side = |index| walls.side_distance(&centre_of(index)).min(0.0);
        let mut least: Vec<Real> = (0..count).map(side).collect();
        let owner = |least: &Real| if *least < 0.0 { OTHERS } else { NOTHING };
        let mut owner: Vec<u32> = least.iter().map(owner).collect();
        each_solid_near(walls, centre, reach, time, |solid, posed| {
            let own = if walls.solids[solid].body.is_some() { solid as u32 } else { OTHERS };
            for (index, (least, owner)) in least.iter_mut().zip(&mut owner).enumerate() {
                let distance = posed.distance(&centre_of(index));
                if distance < *least {
                    (*least, *owner) = (distance, own);
                }
            }
        });
        Voxels { owner }
    }

    /// The open share of the low face of a cell: all or nothing.
    pub fn open_share(&self, base: usize, axis: usize) -> f32 {
        let is_open = [base - STRIDE[axis], base].iter().all(|&cell| self.owner[cell] == NOTHING);
        f32::from(u8::from(is_open))
    }

    /// Lists the faces of the block that bodies close. Those inside of solids separate nothing.
    pub fn find_shares<const D: usize>(&self, slot: usize, found: &mut Vec<BodyShare>) {
        for axis in 0..D {
            for local in 0..power(SIDE, D) {
                let base = corner_of::<D>(unflatten(local, SIDE).map(|c| c as i32));
                let solid = match [self.owner[base - STRIDE[axis]], self.owner[base]] {
                    [NOTHING, solid] | [solid, NOTHING] if solid < NOTHING => solid,
                    _ => continue,
                };
                let (slot, axis, local) = (slot as u32, axis as u8, local as u16);
                found.push(BodyShare { slot, axis, local, solid, share: 1.0 });
            }
        }
    }
}
