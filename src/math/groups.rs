//! Items that belong to groups, group by group in one list.

/// Sets `start` to where each group starts in a list of items sorted by group, and where the last one ends.
pub fn group_starts(start: &mut Vec<u32>, groups: usize, group_of_each: impl Iterator<Item = u32>) {
    start.clear();
    start.resize(groups + 1, 0);
    group_of_each.for_each(|group| start[group as usize + 1] += 1);
    for group in 0..groups {
        start[group + 1] += start[group];
    }
}

/// Sorts items by group, those of one group in the order they come in: `place(at, item)` puts one where it belongs. `start`
/// becomes what [`group_starts`] finds. Takes time linear in the number of items.
pub fn sort_by_group<T>(
    start: &mut Vec<u32>,
    groups: usize,
    items: impl Iterator<Item = T> + Clone,
    group: impl Fn(&T) -> u32,
    mut place: impl FnMut(usize, T),
) {
    // While items are placed, `start[group + 1]` is where the next one of `group` goes; afterwards it has become that group's
    // end, which is where the following one starts.
    group_starts(start, groups + 1, items.clone().map(|item| group(&item) + 1));
    for item in items {
        let next = &mut start[group(&item) as usize + 1];
        place(*next as usize, item);
        *next += 1;
    }
    start.pop();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_group_by_group_and_keep_their_order() {
        let items = [(2, 'a'), (0, 'b'), (2, 'c'), (3, 'd'), (0, 'e'), (2, 'f')];
        let (mut start, mut sorted) = (vec![7; 3], ['-'; 6]);
        sort_by_group(&mut start, 5, items.iter(), |item| item.0, |at, item| sorted[at] = item.1);
        assert_eq!(sorted, ['b', 'e', 'a', 'c', 'f', 'd']);
        assert_eq!(start, [0, 2, 2, 5, 6, 6]);
        let mut found = Vec::new();
        group_starts(&mut found, 5, [0, 0, 2, 2, 2, 3].into_iter());
        assert_eq!(found, start);
    }

    #[test]
    fn no_items_and_no_groups_will_do() {
        let mut start = vec![3];
        sort_by_group(&mut start, 0, [0u32; 0].iter(), |group| **group, |_, _| unreachable!());
        assert_eq!(start, [0]);
        sort_by_group(&mut start, 2, [0u32; 0].iter(), |group| **group, |_, _| unreachable!());
        assert_eq!(start, [0, 0, 0]);
    }
}
