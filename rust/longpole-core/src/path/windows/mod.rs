//! Windows of a trace: steps, annotations, two times, or the whole trace.
//!
//! A window is more than two times: it also records the events that open and end it, so that it
//! moves with them in a what-if.

mod choices;
mod completion;
mod cycles;
mod markers;
mod model;
mod retimed;
mod scope;
mod serving;
mod steps;

pub use choices::whole;
pub use model::{Choice, Moment, Opening, Window, WindowEnd};
pub use retimed::{moved_range, moved_with};
pub(super) use scope::ENOUGH_WINDOWS;
pub use scope::{Reason, Scope, Unit, scope, window};
pub use serving::{ServerIterations, ServerMark, is_of_server, server_iterations};
pub use steps::{Marked, Step, Steps, steps};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::link::{self, Launches};
    use crate::progress::silent;
    use crate::read::{Options, read_bytes};
    use crate::tables::Tables;

    /// Creates two steps of 20 us; the device finishes the first at 30 and the second at 60.
    fn two_steps() -> (Tables, Launches) {
        let rows = [
            ("user_annotation", "ProfilerStep#1", 1, 0, 20, 0),
            ("user_annotation", "ProfilerStep#2", 1, 20, 20, 0),
            ("cuda_runtime", "cudaLaunchKernel", 1, 5, 2, 1),
            ("cuda_runtime", "cudaLaunchKernel", 1, 25, 2, 2),
            ("kernel", "K1", 0, 10, 20, 1),
            ("kernel", "K2", 0, 31, 29, 2),
        ];
        let event = |(category, name, pid, ts, dur, correlation): (
            &str,
            &str,
            i64,
            i64,
            i64,
            i64,
        )| {
            format!(
                r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":{pid},"tid":7,"ts":{ts}e-3,"dur":{dur}e-3,
                "args":{{"correlation":{correlation}}}}}"#
            )
        };
        let text = format!("[{}]", rows.map(event).join(","));
        let tables = read_bytes(text.as_bytes(), &Options::default()).unwrap();
        let launches = link::launches(&tables, &silent).unwrap();
        (tables, launches)
    }

    fn times(choice: &Choice) -> Result<(i64, i64)> {
        let (tables, launches) = two_steps();
        window(&tables, &launches, choice, None).map(|window| (window.start_ns, window.end_ns))
    }

    #[test]
    fn a_step_ends_with_its_annotation_and_all_work_it_launched() {
        let step = |end| times(&Choice::Step(2, end));
        assert_eq!(step(WindowEnd::Period), Ok((30, 60)));
        assert_eq!(step(WindowEnd::Last), Ok((20, 60)));
        assert_eq!(step(WindowEnd::Gpu), Ok((20, 60)));
        assert_eq!(step(WindowEnd::Cpu), Ok((20, 40)));
    }

    #[test]
    fn a_period_without_the_step_before_begins_at_its_annotation() {
        assert_eq!(times(&Choice::Step(1, WindowEnd::Period)), Ok((0, 30)));
    }

    #[test]
    fn the_table_of_steps_gives_the_periods() {
        let (tables, launches) = two_steps();
        let found = steps(&tables, &launches, None).unwrap();
        let periods = found.rows.iter().map(|step| (step.period.start_ns, step.period.end_ns));
        let windows: Vec<_> = periods.collect();
        assert_eq!(windows, [(0, 30), (30, 60)]);
    }

    #[test]
    fn a_step_whose_host_work_lies_before_its_window_says_so() {
        let (tables, launches) = two_steps();
        let reason = |choice| scope(&tables, &launches, &choice, None).unwrap().reason;
        let second = reason(Choice::Step(2, WindowEnd::Period));
        assert_eq!((&*second.text, &*second.clause), ("as asked", ""));
        let tables = read_bytes(AHEAD.as_bytes(), &Options::default()).unwrap();
        let launches = link::launches(&tables, &silent).unwrap();
        let reason = |choice| scope(&tables, &launches, &choice, None).unwrap().reason;
        let ahead =
            "the host runs ahead by one step: the host work of this step lies before this window";
        let found = reason(Choice::Step(2, WindowEnd::Period));
        assert_eq!((&*found.text, &*found.clause), (&*format!("as asked; {ahead}"), ahead));
        assert_eq!(reason(Choice::Step(2, WindowEnd::Last)).text, "as asked");
    }

    /// The device finishes the first step at 90, long after the host finished the second.
    const AHEAD: &str = r#"[
        {"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":20},
        {"ph":"X","cat":"user_annotation","name":"ProfilerStep#2","pid":1,"tid":1,"ts":20,"dur":20},
        {"ph":"X","cat":"cuda_runtime","name":"c","pid":1,"tid":1,"ts":5,"dur":1,"args":{"correlation":1}},
        {"ph":"X","cat":"cuda_runtime","name":"c","pid":1,"tid":1,"ts":25,"dur":1,"args":{"correlation":2}},
        {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":10,"dur":80,"args":{"correlation":1}},
        {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":90,"dur":80,"args":{"correlation":2}}]"#;

    #[test]
    fn a_whole_trace_says_that_it_leaves_annotations_out() {
        let text = br#"[
            {"ph":"X","cat":"user_annotation","name":"fit","pid":1,"tid":1,"ts":0,"dur":900},
            {"ph":"X","cat":"cpu_op","name":"aten::empty","pid":1,"tid":1,"ts":950,"dur":5}]"#;
        let tables = read_bytes(text, &Options::default()).unwrap();
        let launches = link::launches(&tables, &silent).unwrap();
        let scope = scope(&tables, &launches, &Choice::Whole, None).unwrap();
        assert_eq!(scope.window().start_ns, 950_000);
        assert!(scope.reason.clause.contains("most of the trace is annotations outside of these"));
    }

    #[test]
    fn what_is_launched_inside_two_steps_completes_both() {
        let text = br#"[
            {"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":20},
            {"ph":"X","cat":"user_annotation","name":"ProfilerStep#7","pid":1,"tid":1,"ts":4,"dur":6},
            {"ph":"X","cat":"cuda_runtime","name":"c","pid":1,"tid":1,"ts":5,"dur":1,"args":{"correlation":1}},
            {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":80,"dur":10,"args":{"correlation":1}}]"#;
        let tables = read_bytes(text, &Options::default()).unwrap();
        let launches = link::launches(&tables, &silent).unwrap();
        let found = steps(&tables, &launches, None).unwrap();
        let periods = found.rows.iter().map(|step| (step.period.start_ns, step.period.end_ns));
        let windows: Vec<_> = periods.collect();
        assert_eq!(windows, [(0, 90_000), (4_000, 90_000)]);
    }

    #[test]
    fn the_number_of_work_tells_in_which_step_its_lost_launch_was() {
        let missing_from_2 = |number: i64| {
            let text = format!(
                r#"[
            {{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":20}},
            {{"ph":"X","cat":"user_annotation","name":"ProfilerStep#2","pid":1,"tid":1,"ts":20,"dur":20}},
            {{"ph":"X","cat":"cuda_runtime","name":"c","pid":1,"tid":1,"ts":5,"dur":1,"args":{{"correlation":1}}}},
            {{"ph":"X","cat":"cuda_runtime","name":"c","pid":1,"tid":1,"ts":18,"dur":1,"args":{{"correlation":5}}}},
            {{"ph":"X","cat":"cuda_runtime","name":"c","pid":1,"tid":1,"ts":21,"dur":1,"args":{{"correlation":7}}}},
            {{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":10,"dur":50,"args":{{"correlation":1}}}},
            {{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":60,"dur":50,"args":{{"correlation":{number}}}}}]"#
            );
            let tables = read_bytes(text.as_bytes(), &Options::default()).unwrap();
            let launches = link::launches(&tables, &silent).unwrap();
            steps(&tables, &launches, None).unwrap().rows[0].period.end_ns
        };
        assert_eq!((missing_from_2(3), missing_from_2(8)), (110_000, 60_000));
    }

    #[test]
    fn a_wait_for_the_device_does_not_end_a_window_in_which_the_device_works() {
        let text = br#"[
            {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":0,"dur":1,"args":{"correlation":1}},
            {"ph":"X","cat":"cpu_op","name":"aten::item","pid":1,"tid":1,"ts":2,"dur":97},
            {"ph":"X","cat":"cuda_runtime","name":"cudaDeviceSynchronize","pid":1,"tid":1,"ts":3,"dur":95},
            {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":10,"dur":80,"args":{"correlation":1}}]"#;
        let tables = read_bytes(text, &Options::default()).unwrap();
        let launches = link::launches(&tables, &silent).unwrap();
        let ends = |start_ns, end_ns| {
            let choice = Choice::Between(start_ns, end_ns);
            let found = window(&tables, &launches, &choice, None).unwrap();
            let names = found.candidates.iter().filter_map(|end| tables.events.name(end.event()));
            names.map(|name| tables.strings.get(name).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(ends(20_000, 60_000), ["k"]);
        assert_eq!(ends(0, 60_000), ["cudaLaunchKernel", "k"]);
        let waited = ["aten::item", "cudaDeviceSynchronize", "k"];
        assert_eq!(ends(20_000, 95_000), waited);
    }

    #[test]
    fn a_window_that_is_not_there_is_an_error_in_words() {
        let words = |choice| times(&choice).unwrap_err().to_string();
        assert_eq!(
            words(Choice::Step(7, WindowEnd::Last)),
            "the trace has no step 7; its steps go from 1 to 2"
        );
        assert_eq!(
            words(Choice::Annotation("fit".to_owned(), 0, WindowEnd::Last)),
            "the trace has no annotation \"fit\"; there are \"ProfilerStep#1\" (1), \"ProfilerStep#2\" (1)"
        );
        assert_eq!(
            words(Choice::Between(70, 80)),
            "the trace has no work between 70 and 80 ns; its work goes from 5 to 60 ns"
        );
    }
}
