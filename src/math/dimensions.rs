//! Functions whose bodies for two and three dimensions are compiled in this crate.

/// Declares a generic function whose bodies for 2 and 3 dimensions are compiled here, once. Generic functions are otherwise
/// compiled again by every program that uses them, and the solver takes minutes. Bodies are named after `=`:
///
/// ```text
/// compiled_here! {
///     /// Doc line.
///     pub fn name<D>(state: &State<D>, count: usize) -> Report = body;
/// }
/// ```
macro_rules! compiled_here {
    ($(#[$meta:meta])* $vis:vis fn $name:ident<D>($($argument:ident: $type:ty),* $(,)?) -> $result:ty = $body:path;) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name<const D: usize>($($argument: $type),*) -> $result {
            let compiled: *const () = match D {
                2 => $crate::math::compiled_here!(@for 2, ($($argument: $type),*), $result, $body),
                3 => $crate::math::compiled_here!(@for 3, ($($argument: $type),*), $result, $body),
                _ => panic!("there are two or three dimensions, not {D}"),
            };
            // SAFETY: this is the address of a function of just this type: its types are the ones here with D's value.
            let compiled = unsafe { std::mem::transmute::<*const (), fn($($type),*) -> $result>(compiled) };
            compiled($($argument),*)
        }
    };
    (@for $dimension:literal, ($($argument:ident: $type:ty),*), $result:ty, $body:path) => {{
        const D: usize = $dimension;
        // Not generic and not inlined: other crates link to it.
        #[inline(never)]
        #[allow(clippy::too_many_arguments)]
        fn compiled($($argument: $type),*) -> $result {
            $body($($argument),*)
        }
        compiled as *const ()
    }};
}

pub(crate) use compiled_here;

#[cfg(test)]
mod tests {
    fn sum_of<const D: usize>(values: &[f64; D], factor: f64) -> f64 {
        factor * values.iter().sum::<f64>()
    }

    compiled_here! {
        /// The sum of `D` values, times a factor.
        fn sum<D>(values: &[f64; D], factor: f64) -> f64 = sum_of;
    }

    #[test]
    fn each_dimension_has_its_own_body() {
        assert_eq!(sum(&[1.0, 2.0], 10.0), 30.0);
        assert_eq!(sum(&[1.0, 2.0, 3.0], 10.0), 60.0);
    }

    #[test]
    #[should_panic(expected = "two or three dimensions, not 4")]
    fn other_dimensions_are_refused() {
        sum(&[1.0; 4], 1.0);
    }
}
