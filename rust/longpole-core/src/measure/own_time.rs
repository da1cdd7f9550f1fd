use crate::ids::EventId;
use crate::stack::Nesting;
use crate::tables::{EventTable, NO_INTEGER};

/// The time of each event in which nothing that began after it ran on its
/// thread, one row for each event; [`NO_INTEGER`] for what stands on no thread.
///
/// Every instant of a thread belongs to the open event that started last, also
/// where events cross; so own times sum to the time in which anything ran.
pub fn own_time_ns(events: &EventTable, nesting: &Nesting) -> Vec<i64> {
    let mut own = vec![NO_INTEGER; events.len()];
    let mut thread = Thread { own: &mut own, open: Vec::new(), now: i64::MIN };
    let mut lane = None;
    for event in nesting.in_order() {
        let Some((start, end)) = events.span(event) else { continue };
        if lane.replace(events.lane(event)) != Some(events.lane(event)) {
            thread.go_to(i64::MAX);
            thread.now = i64::MIN;
        }
        thread.go_to(start);
        thread.own[event.row()] = 0;
        thread.open.push((event, end));
    }
    thread.go_to(i64::MAX);
    own
}

/// A thread at a point in time.
struct Thread<'a> {
    own: &'a mut [i64],
    /// The events that have begun, in that order, with their ends; some have ended.
    open: Vec<(EventId, i64)>,
    now: i64,
}

impl Thread<'_> {
    /// Gives the time up to `then` to those that own it.
    fn go_to(&mut self, then: i64) {
        while let Some(&(event, end)) = self.open.last() {
            let until = end.min(then);
            if until > self.now {
                self.own[event.row()] += until - self.now;
                self.now = until;
            }
            if end > then {
                return;
            }
            self.open.pop();
        }
        self.now = then;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::silent;
    use crate::read::{read_bytes, Options};
    use crate::stack::nesting;

    /// Own times in us of operators `(thread, start, end)` in us.
    fn own(rows: &[(i64, i64, i64)]) -> Vec<i64> {
        let events: Vec<_> = rows
            .iter()
            .map(|(thread, start, end)| {
                format!(
                    r#"{{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":{thread},"ts":{start},"dur":{}}}"#,
                    end - start
                )
            })
            .collect();
        let tables =
            read_bytes(format!("[{}]", events.join(",")).as_bytes(), &Options::default()).unwrap();
        let nesting = nesting(&tables, &silent).unwrap();
        own_time_ns(&tables.events, &nesting).iter().map(|ns| ns / 1000).collect()
    }

    #[test]
    fn children_are_taken_off_once() {
        let rows = [(1, 0, 100), (1, 10, 40), (1, 20, 30), (1, 60, 60), (1, 90, 100)];
        assert_eq!(own(&rows), [60, 20, 10, 0, 10]);
    }

    #[test]
    fn where_events_cross_the_later_one_owns_the_time_and_the_sum_closes() {
        let rows = [(1, 0, 100), (1, 10, 40), (1, 35, 60), (1, 50, 120)];
        assert_eq!(own(&rows), [10, 25, 15, 70]);
        assert_eq!(own(&rows).iter().sum::<i64>(), 120);
    }

    #[test]
    fn threads_do_not_know_each_other() {
        assert_eq!(own(&[(1, 50, 100), (2, 0, 60)]), [50, 60]);
    }
}
