//! The parameters with which the task of an earlier server's run is run again.

use super::messages::{LimitsPatch, RunParams};
use starling_core::Approval;
use starling_swarm::Event;

/// Message for the user when a run without recorded parameters is run again.
pub const UNKNOWN_PARAMS: &str = "the parameters of the first run are not known, because another \
     version of Starling recorded it: its task is run again with your review of every change and \
     the limits of the first run, and otherwise with the current settings";

/// Returns the recorded parameters of the run that `started` began. Returns `None` if there are
/// none that this version can read.
pub fn recorded_params(started: &Event) -> Option<RunParams> {
    if let Event::RunStarted {
        task,
        request: Some(request),
        ..
    } = started
    {
        RunParams::from_record(task.clone(), request)
    } else {
        None
    }
}

/// Returns the parameters of the run that `started` began. If they are not recorded, a person
/// reviews the changes, and the limits of the first run hold.
pub fn params_of(started: Option<&Event>, task: &str) -> RunParams {
    if let Some(recorded) = started.and_then(recorded_params) {
        return recorded;
    }
    let unknown = RunParams {
        task: task.to_owned(),
        approve: Some(Approval::Ask),
        ..RunParams::default()
    };
    if let Some(Event::RunStarted { driver, limits, .. }) = started {
        RunParams {
            driver: Some(*driver),
            limits: LimitsPatch::all(limits),
            ..unknown
        }
    } else {
        unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_core::{Driver, Limits};
    use starling_swarm::{RequestParams, RunId};

    fn started(request: Option<RequestParams>) -> Event {
        Event::RunStarted {
            run: RunId("r".to_owned()),
            task: "tidy".to_owned(),
            driver: Driver::Single,
            models: Vec::new(),
            replayed: false,
            limits: Limits {
                calls: 3,
                ..Limits::default()
            },
            root: String::new(),
            request,
        }
    }

    #[test]
    fn recorded_parameters_are_used_again() {
        let params = RunParams {
            task: "tidy".to_owned(),
            approve: Some(Approval::Auto),
            begin: vec!["a.py::f".parse().unwrap()],
            model: Some("openai:m".to_owned()),
            test: Some("make check".to_owned()),
            require_tests: true,
            ..RunParams::default()
        };
        let record = params.to_record();
        assert!(!record.as_ref().unwrap().contains_key("task"));
        assert_eq!(params_of(Some(&started(record)), "tidy"), params);
    }

    #[test]
    fn person_reviews_the_changes_if_the_parameters_are_unknown() {
        let newer = RequestParams::from_iter([("thrift".to_owned(), true.into())]);
        for request in [None, Some(newer)] {
            let started = started(request);
            assert_eq!(recorded_params(&started), None);
            let params = params_of(Some(&started), "tidy");
            assert_eq!(params.task, "tidy");
            assert_eq!(params.approve, Some(Approval::Ask));
            assert_eq!(params.driver, Some(Driver::Single));
            assert_eq!(params.limits.calls, Some(3));
        }
        assert_eq!(params_of(None, "tidy").approve, Some(Approval::Ask));
    }
}
