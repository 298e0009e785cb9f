//! The `linear` room (stand-in).
use crate::grid::*;
use crate::math::*;
use std::sync::atomic::AtomicBool;
#[derive(Default)]
pub struct SharedNodes {}
#[derive(Clone, Copy, Debug)]
pub enum PreconditionerKind {
    Multigrid,
    Jacobi,
    IncompleteCholesky,
}
#[derive(Clone, Copy, Debug)]
pub struct SolverParams {
    pub tolerance: f64,
    pub floor: f64,
    pub max_iterations: usize,
    pub preconditioner: PreconditionerKind,
    pub sweeps: usize,
    pub warm_start: bool,
}
#[derive(Clone, Debug, Default)]
pub struct SolveInfo {
    pub iterations: usize,
    pub relative_residual: f64,
    pub converged: bool,
    pub seconds_setup: f64,
    pub seconds_solve: f64,
}
pub struct System<'a, const D: usize> {
    pub blocks: &'a Blocks<D>,
    pub live: &'a Slots,
    pub link: &'a [Field<f32>; D],
    pub ground: &'a Field<f32>,
    pub ground_area: &'a Field<f32>,
    pub shared: &'a SharedNodes,
}
#[derive(Default)]
pub struct Solver<const D: usize> {}
impl<const D: usize> Solver<D> {
    pub fn new() -> Self {
        Solver {}
    }
    pub fn bytes(&self) -> usize {
        0
    }
    pub fn solve(
        &mut self,
        s: &System<D>,
        rhs: &mut Field<f64>,
        x: &mut Field<f64>,
        _: &mut [f64],
        _: &mut [f64],
        p: &SolverParams,
        _: Option<&AtomicBool>,
    ) -> SolveInfo {
        let n = x.as_slice().len();
        let nb = block_cells(D);
        let mut edges = vec![];
        let mut diag = vec![0f64; n];
        for &slot in s.live.as_slice() {
            for local in 0..nb {
                let i = slot as usize * nb + local;
                diag[i] += s.ground[i] as f64;
                for a in 0..D {
                    let g = s.link[a][i] as f64;
                    if g > 0.0 {
                        let c = unflatten::<D>(local, SIDE);
                        let f = s.blocks.first_cell(slot as usize);
                        let mut cell: [i32; D] = std::array::from_fn(|k| f[k] + c[k] as i32);
                        cell[a] -= 1;
                        let (sl, lo) = s.blocks.locate(cell);
                        let j = sl as usize * nb + lo;
                        edges.push((i, j, g));
                        diag[i] += g;
                        diag[j] += g;
                    }
                }
            }
        }
        if s.live.as_slice().iter().all(|&sl| s.ground.block(sl as usize).iter().all(|&g| g == 0.0)) {
            let m: f64 = (0..n).filter(|&i| diag[i] > 0.0).map(|i| rhs[i]).sum::<f64>()
                / diag.iter().filter(|d| **d > 0.0).count() as f64;
            for i in 0..n {
                if diag[i] > 0.0 {
                    rhs[i] -= m;
                }
            }
        }
        let mul = |x: &[f64], y: &mut [f64]| {
            for i in 0..n {
                y[i] = 0.0;
            }
            for &slot in s.live.as_slice() {
                for l in 0..nb {
                    let i = slot as usize * nb + l;
                    y[i] = s.ground[i] as f64 * x[i];
                }
            }
            for &(i, j, g) in &edges {
                let d = g * (x[i] - x[j]);
                y[i] += d;
                y[j] -= d;
            }
        };
        if !p.warm_start {
            x.as_mut_slice().fill(0.0);
        }
        let x = x.as_mut_slice();
        for i in 0..n {
            if diag[i] == 0.0 {
                x[i] = 0.0;
            }
        }
        let b: Vec<f64> = (0..n).map(|i| if diag[i] > 0.0 { rhs[i] } else { 0.0 }).collect();
        let norm = b.iter().map(|v| v * v).sum::<f64>().sqrt();
        let mut ap = vec![0.0; n];
        mul(x, &mut ap);
        let mut r: Vec<f64> = (0..n).map(|i| b[i] - ap[i]).collect();
        let prec = |r: &[f64]| -> Vec<f64> {
            (0..n).map(|i| if diag[i] > 0.0 { r[i] / diag[i] } else { 0.0 }).collect()
        };
        let mut z = prec(&r);
        let mut d = z.clone();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let mut rz = dot(&r, &z);
        let mut it = 0;
        let mut res = dot(&r, &r).sqrt();
        while res > p.tolerance * norm && r.iter().fold(0f64, |m, v| m.max(v.abs())) > p.floor && it < 20000 {
            mul(&d, &mut ap);
            let al = rz / dot(&d, &ap);
            for i in 0..n {
                x[i] += al * d[i];
                r[i] -= al * ap[i];
            }
            z = prec(&r);
            let rz2 = dot(&r, &z);
            let be = rz2 / rz;
            rz = rz2;
            for i in 0..n {
                d[i] = z[i] + be * d[i];
            }
            res = dot(&r, &r).sqrt();
            it += 1;
        }
        SolveInfo {
            iterations: it,
            relative_residual: if norm > 0.0 { res / norm } else { 0.0 },
            converged: true,
            ..Default::default()
        }
    }
}
