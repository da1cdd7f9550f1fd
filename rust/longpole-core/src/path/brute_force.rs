//! Checks ten thousand small graphs against an enumeration of all chains.

use std::cmp::Reverse;

use super::*;
use crate::graph::{Edge, Evidence, Graph, Kind, Role};
use crate::ids::{EventId, NodeId};
use crate::names::Names;
use crate::progress::silent;
use crate::tables::{NO_INTEGER, Tables};

const GRAPHS: u64 = 10_000;

/// A small generator (xorshift64*), so that the graphs are the same on every machine.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).unwrap() % count
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Creates a graph of two to six events within 12 ns, so that ties are frequent, and some edges.
fn graph(seed: u64) -> Graph {
    let mut dice = Dice::new(seed);
    let spans: Vec<_> = (0..2 + dice.below(5))
        .map(|_| {
            let start = i64::try_from(dice.below(8)).unwrap();
            (start, start + i64::try_from(dice.below(5)).unwrap())
        })
        .collect();
    Graph::of_events(&spans, |timeline, nodes| {
        let count = nodes.len();
        (0..dice.below(3 * count))
            .map(|_| {
                let [one, two] = [(); 2].map(|()| NodeId::from_row(dice.below(count)));
                let owner = dice.below(timeline.len());
                let words = (dice.one_of(&Kind::ALL[..12]), dice.one_of(Role::ALL));
                let owner = timeline.order(EventId::from_row(owner));
                Edge::new((one, two), words, owner, dice.one_of(Evidence::ALL))
            })
            .filter(|edge| edge.source != edge.target)
            .collect()
    })
}

/// Returns a window from time 2 to the last end.
fn whole(graph: &Graph) -> Window {
    let candidates: Vec<_> =
        graph.timeline.orders().map(|order| Moment::End(graph.timeline.event(order))).collect();
    let end_ns = graph.timeline.orders().map(|order| graph.timeline.end_ns(order)).max().unwrap();
    Window { start_ns: 2.min(end_ns), end_ns, candidates, opening: Opening::Time }
}

/// Returns every chain of edges that ends at a node, the edge into the node first.
fn chains_to(graph: &Graph, node: NodeId) -> Vec<Vec<usize>> {
    let mut chains = vec![vec![]];
    for number in graph.edges.range(node) {
        for mut chain in chains_to(graph, graph.edges.as_slice()[number].source) {
            chain.insert(0, number);
            chains.push(chain);
        }
    }
    chains
}

/// Returns the chains to a node that nothing precedes.
fn whole_chains_to(graph: &Graph, node: NodeId) -> Vec<Vec<usize>> {
    let first =
        |chain: &[usize]| chain.last().map_or(node, |&last| graph.edges.as_slice()[last].source);
    let is_whole = |chain: &Vec<usize>| graph.edges.range(first(chain)).is_empty();
    chains_to(graph, node).into_iter().filter(is_whole).collect()
}

/// Returns the time of a node in a window that begins at `from_ns`: the maximum over all chains to
/// it. A chain may start at a node before the window, which keeps its time, or at any other, which
/// comes no earlier than observed.
fn changed_time_by_chains(graph: &Graph, node: NodeId, latencies_ns: &[i64], from_ns: i64) -> i64 {
    let time = |chain: Vec<usize>| {
        let first = chain.last().map_or(node, |&last| graph.edges.as_slice()[last].source);
        let first_ns = graph.nodes.time_ns(first);
        let is_whole = graph.edges.range(first).is_empty();
        let earliest_ns = if is_whole { first_ns } else { first_ns.min(from_ns) };
        earliest_ns + chain.iter().map(|&number| latencies_ns[number]).sum::<i64>()
    };
    chains_to(graph, node).into_iter().map(time).max().unwrap()
}

/// Returns the time of a node by all chains to it. The first node of a chain keeps its time; a node
/// of `late` is delayed.
fn time_by_chains(
    graph: &Graph,
    node: NodeId,
    latencies_ns: &[i64],
    late: Option<(NodeId, i64)>,
) -> i64 {
    let delay = |node| late.filter(|&(of, _)| of == node).map_or(0, |(_, delay)| delay);
    let time = |chain: Vec<usize>| {
        let edges =
            chain.iter().map(|&number| (&graph.edges.as_slice()[number], latencies_ns[number]));
        let first = chain.last().map_or(node, |&last| graph.edges.as_slice()[last].source);
        let latencies: i64 = edges.map(|(edge, latency)| latency + delay(edge.target)).sum();
        graph.nodes.time_ns(first) + delay(first) + latencies
    };
    whole_chains_to(graph, node).into_iter().map(time).max().unwrap()
}

fn each_graph(check: impl Fn(u64, &Graph)) {
    for seed in 0..GRAPHS {
        check(seed, &graph(seed));
    }
}

fn end_of(graph: &Graph) -> NodeId {
    walk::last_node(graph, &whole(graph), &Schedule::observed()).unwrap()
}

#[test]
fn every_edge_leads_onward_and_none_is_lost() {
    each_graph(|seed, graph| {
        let onward = |edge: &Edge| edge.source < edge.target && edge.gap_ns(&graph.nodes) >= 0;
        assert!(graph.edges.as_slice().iter().all(onward), "{seed}");
        assert!(graph.violations.iter().all(|edge| edge.gap_ns(&graph.nodes) < 0), "{seed}");
        assert!(graph.cut.iter().all(|edge| edge.gap_ns(&graph.nodes) == 0), "{seed}");
    });
}

#[test]
fn the_path_is_the_chain_of_what_finished_last_and_tiles_the_window() {
    each_graph(|seed, graph| {
        let window = whole(graph);
        let path = walk(graph, &window, &Schedule::observed());
        let length: i64 = path.segments.iter().map(Segment::duration_ns).sum();
        assert_eq!(length, window.end_ns - window.start_ns, "{seed}");
        assert!(path.segments.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns), "{seed}");
        let mut node = end_of(graph);
        for &number in path.edges.iter().rev() {
            assert_eq!(best(graph, node), Some(number as usize), "{seed}");
            node = graph.edges.as_slice()[number as usize].source;
        }
    });
}

/// Returns the binding edge, computed directly from the definition.
fn best(graph: &Graph, node: NodeId) -> Option<usize> {
    graph.edges.range(node).min_by_key(|&number| {
        let edge = &graph.edges.as_slice()[number];
        let at = if edge.role.is_inside() { edge.target } else { edge.source };
        let source = graph.nodes.event(edge.source);
        let tie =
            (edge.role.tie_class(), source, graph.nodes.is_end(edge.source), edge.role.name());
        (Reverse(graph.nodes.time_ns(at)), tie)
    })
}

#[test]
fn unchanged_latencies_keep_every_time() {
    each_graph(|seed, graph| {
        let latencies_ns = latencies_ns(graph);
        let window = whole(graph);
        let same =
            what_if(graph, &Tables::default(), &window, (&latencies_ns, 0), &[], &silent).unwrap();
        assert_eq!(same.path, walk(graph, &window, &same.schedule), "{seed}");
        assert_eq!(same.schedule.times_ns(graph), graph.nodes.times_ns(), "{seed}");
        for node in graph.nodes.ids() {
            let reached_by = same.schedule.reached_by(node, graph);
            assert_eq!(reached_by, graph.edges.binding(node), "{seed}");
            assert_eq!(
                time_by_chains(graph, node, &latencies_ns, None),
                graph.nodes.time_ns(node),
                "{seed}"
            );
        }
    });
}

#[test]
fn changed_times_are_those_of_the_latest_chain_and_less_work_never_takes_longer() {
    each_graph(|seed, graph| {
        let (window, latencies_ns) = (whole(graph), latencies_ns(graph));
        let mut dice = Dice::new(seed ^ 0xff);
        let kind = dice.one_of(&Kind::ALL[..12]);
        let ratio = |numerator| Ratio::new(numerator, 4).unwrap();
        let mut before = i64::MIN;
        for numerator in [0, 1, 3, 4, 6] {
            let change = Change::of_kind(Effect::Scale(ratio(numerator)), kind);
            let tables = Tables::default();
            let answer =
                what_if(graph, &tables, &window, (&latencies_ns, 0), &[change], &silent).unwrap();
            for node in graph.nodes.ids() {
                let latest =
                    changed_time_by_chains(graph, node, &answer.latencies_ns, window.start_ns);
                assert_eq!(answer.schedule.time_ns(node, graph), latest, "{seed}");
                let observed_ns = graph.nodes.time_ns(node);
                assert!(observed_ns > window.start_ns || latest == observed_ns, "{seed}");
                assert!(observed_ns <= window.start_ns || latest >= window.start_ns, "{seed}");
            }
            assert_eq!(answer.path.start_ns, window.start_ns, "{seed}");
            let end_ns = *answer.schedule.times_ns(graph).iter().max().unwrap();
            assert!(before <= end_ns, "{seed}");
            before = end_ns;
        }
    });
}

/// Returns a window from the end of one event, the completion of what came before, to the last end.
fn period(graph: &Graph, seed: u64) -> Window {
    let orders: Vec<_> = graph.timeline.orders().collect();
    let before = orders[Dice::new(seed ^ 0xfe).below(orders.len())];
    let opening = Opening::Moments(vec![Moment::End(graph.timeline.event(before))]);
    Window { start_ns: graph.timeline.end_ns(before), opening, ..whole(graph) }
}

#[test]
fn less_work_never_makes_a_period_longer_and_is_measured_from_its_changed_start() {
    let mut n_catching_up = 0;
    for seed in 0..GRAPHS {
        let graph = graph(seed);
        let (window, latencies_ns) = (period(&graph, seed), latencies_ns(&graph));
        let Opening::Moments(opening) = &window.opening else { unreachable!() };
        let (opener, tables) = (clip::node_of(&graph, opening[0]).unwrap(), Tables::default());
        let observed_ns = window.end_ns - window.start_ns;
        let mut dice = Dice::new(seed ^ 0xfd);
        let kind = dice.one_of(&Kind::ALL[..12]);
        for numerator in 0..=4 {
            let by = Effect::Scale(Ratio::new(numerator, 4).unwrap());
            let change = Change::of_kind(by, kind);
            let before = (&latencies_ns[..], observed_ns);
            let changes = [change];
            let answer = what_if(&graph, &tables, &window, before, &changes, &silent).unwrap();
            let path_ns: i64 = answer.path.segments.iter().map(Segment::duration_ns).sum();
            assert_eq!(path_ns, answer.makespan_ns, "{seed}");
            assert!((0..=observed_ns).contains(&answer.makespan_ns), "{seed}");
            assert!(numerator < 4 || answer.makespan_ns == observed_ns, "{seed}");
            if kind.is_device_work() {
                continue; // what it gains at most is that of all such work without time
            }
            let latencies_from = |from_ns| {
                changed_latencies_ns(&graph, &tables, &latencies_ns, &changes, from_ns).unwrap()
            };
            let free = latencies_from(None);
            let last_ns = |time_ns: &dyn Fn(NodeId) -> i64| {
                let ends = graph.timeline.orders().map(|order| time_ns(graph.nodes.end(order)));
                ends.max().unwrap()
            };
            let moved_ns = |node| time_by_chains(&graph, node, &free, None);
            let free_ns = last_ns(&moved_ns) - moved_ns(opener);
            let expected_ns = if free_ns > observed_ns && free_ns / 4 > observed_ns / 3 {
                n_catching_up += 1;
                let (held, from_ns) = (latencies_from(Some(window.start_ns)), window.start_ns);
                let held_ns = |node| changed_time_by_chains(&graph, node, &held, from_ns);
                last_ns(&held_ns) - window.start_ns
            } else {
                free_ns.min(observed_ns)
            };
            assert_eq!(answer.makespan_ns, expected_ns, "{seed}");
        }
    }
    assert!(n_catching_up > 50, "{n_catching_up}");
}

#[test]
fn many_what_ifs_together_have_the_lengths_of_each_alone() {
    for seed in 0..GRAPHS {
        let (graph, tables) = (graph(seed), Tables::default());
        let latencies_ns = latencies_ns(&graph);
        let mut dice = Dice::new(seed ^ 0xfc);
        let effects = [
            Effect::Scale(Ratio::ZERO),
            Effect::Scale(Ratio::HALF),
            Effect::Scale(Ratio::new(3, 2).unwrap()),
            Effect::Insert(2),
            Effect::RemoveWait,
        ];
        let mut set = || -> Vec<_> {
            let n_changes = dice.below(3);
            (0..n_changes)
                .map(|_| Change::of_kind(dice.one_of(&effects), dice.one_of(&Kind::ALL[..12])))
                .collect()
        };
        let sets: Vec<_> = (0..5).map(|_| set()).collect();
        for window in [whole(&graph), period(&graph, seed)] {
            let before = (&latencies_ns[..], window.end_ns - window.start_ns);
            let together = lengths_ns(&graph, &tables, &window, before, &sets, &silent).unwrap();
            let alone = sets.iter().map(|set| {
                what_if(&graph, &tables, &window, before, set, &silent).unwrap().makespan_ns
            });
            assert_eq!(together, alone.collect::<Vec<_>>(), "{seed}");
        }
    }
}

#[test]
fn eight_what_ifs_share_a_pass() {
    let graph = graph(7);
    let (latencies_ns, tables) = (latencies_ns(&graph), Tables::default());
    let window = period(&graph, 7);
    let passes = |n: i64| {
        let n_passes = std::cell::Cell::new(0);
        let count = |_| {
            n_passes.set(n_passes.get() + 1);
            std::ops::ControlFlow::Continue(())
        };
        let sets: Vec<_> =
            (1..=n).map(|ns| vec![Change::of_kind(Effect::Insert(ns), Kind::Operator)]).collect();
        let before = (&latencies_ns[..], window.end_ns - window.start_ns);
        lengths_ns(&graph, &tables, &window, before, &sets, &count).unwrap();
        n_passes.get()
    };
    assert_eq!(passes(31) - passes(15), 2);
}

#[test]
fn slack_is_the_time_that_an_event_may_take_longer() {
    each_graph(|seed, graph| {
        let (window, mut latencies_ns, end) = (whole(graph), latencies_ns(graph), end_of(graph));
        let end_ns = graph.nodes.time_ns(end);
        let schedule = Schedule::observed();
        let slack = slack_ns(graph, &window, &schedule, &latencies_ns, graph.timeline.len());
        for number in graph.nodes.ids().filter_map(|node| graph.edges.binding(node)) {
            latencies_ns[number] = graph.edges.as_slice()[number].gap_ns(&graph.nodes);
        }
        for order in graph.timeline.orders() {
            let slack_ns = slack[graph.timeline.event(order).row()];
            let late_end = |delay| Some((graph.nodes.end(order), delay));
            let edges = graph.edges.as_slice().iter().enumerate();
            let own: Vec<_> =
                edges.filter(|(_, edge)| edge.event() == Some(order)).map(|(it, _)| it).collect();
            let with_longer = |edge: usize, delay| {
                let mut latencies_ns = latencies_ns.clone();
                latencies_ns[edge] += delay;
                time_by_chains(graph, end, &latencies_ns, None)
            };
            let moved = |delay| {
                let by_end_ns = time_by_chains(graph, end, &latencies_ns, late_end(delay));
                let by_edges_ns = own.iter().map(|&edge| with_longer(edge, delay));
                by_edges_ns.fold(by_end_ns, i64::max) - end_ns
            };
            if slack_ns == NO_INTEGER {
                assert_eq!(moved(1_000), 0, "{seed}");
            } else {
                assert_eq!((moved(slack_ns), moved(slack_ns + 1)), (0, 1), "{seed}");
            }
        }
    });
}

#[test]
fn no_chain_holds_more_work_than_the_longest() {
    each_graph(|seed, graph| {
        let (window, end) = (whole(graph), end_of(graph));
        let time_ns = |node: NodeId| graph.nodes.time_ns(node);
        let clip = |time_ns: i64| time_ns.clamp(window.start_ns, window.end_ns);
        // The time in which an event waits, according to its binding edge, is not part of its self
        // time.
        let waited_until_ns = |edge: &Edge| {
            let number = graph.edges.binding(edge.target).filter(|_| edge.role.is_self_time())?;
            let binding = &graph.edges.as_slice()[number];
            let waits = binding.role.waits().is_some() || binding.role == Role::Handover;
            waits.then(|| binding.finished_ns(graph.nodes.times_ns()))
        };
        let work_ns = |number: usize| {
            let edge = &graph.edges.as_slice()[number];
            let from_ns = waited_until_ns(edge).unwrap_or(i64::MIN).max(time_ns(edge.source));
            if edge.kind.is_work() { clip(time_ns(edge.target)) - clip(from_ns) } else { 0 }
        };
        let most = chains_to(graph, end)
            .into_iter()
            .map(|chain| chain.into_iter().map(work_ns).sum::<i64>());
        let path = walk(graph, &window, &longest(graph, &window));
        let found: i64 = path.edges.iter().map(|&number| work_ns(number as usize)).sum();
        assert_eq!(Some(found), most.max(), "{seed}");
    });
}
