//! The endpoints in the shapes of other servers.

use serde_json::json;

use super::super::operation::{JSON, Operation, Problems, Schemas};
use crate::server::peers::classify::{ClassifyErrorBody, ClassifyReply, ClassifyRequest};
use crate::server::peers::hugging_face::InferenceRequest;
use crate::server::peers::inference_protocol::ProtocolErrorBody;
use crate::server::peers::inference_protocol::health::{Live, ModelReady, Ready};
use crate::server::peers::inference_protocol::infer::{InferReply, InferRequest};
use crate::server::peers::inference_protocol::metadata::{ModelMetadata, ServerMetadata};
use crate::server::peers::predict::{Info, PredictErrorBody, PredictReply, PredictRequest, Prediction};

const PREDICTING: &Problems = &[
    (400, "The body cannot be read, or an input holds no text."),
    (408, "The body did not arrive in time."),
    (413, "The body is too large."),
    (415, "The body is not JSON by its content type."),
    (422, "The inputs have another shape, are too many or too long, or there is no such router."),
    (424, "The network failed."),
    (429, "Too much waits, or the time is too short."),
    (503, "The router is being loaded, or the service stops."),
];

const TELLING: &Problems = &[
    (400, "The query cannot be read."),
    (422, "There is no such router, it is named twice, or the time is none."),
    (503, "The router is being loaded."),
];

const CLASSIFYING: &Problems = &[
    (400, "The body cannot be read, or an input cannot be answered."),
    (404, "There is no such router."),
    (408, "The body did not arrive in time."),
    (413, "The body is too large."),
    (415, "The body is not JSON by its content type."),
    (429, "Most of what waits is of this client."),
    (500, "Something failed inside the service."),
    (503, "The router is being loaded, or too much waits."),
];

const INFERRING: &Problems = &[
    (400, "The body cannot be read, or an input cannot be answered."),
    (404, "There is no such model or version."),
    (408, "The body did not arrive in time."),
    (413, "The body is too large."),
    (415, "The body is neither JSON nor binary tensors by its content type."),
    (429, "Most of what waits is of this client."),
    (500, "Something failed inside the service."),
    (503, "The router is being loaded, or too much waits."),
];

const ABOUT_MODEL: &Problems =
    &[(404, "There is no such model or version."), (503, "The router is being loaded, or the service stops.")];

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let mut all = embeddings_inference(schemas);
    all.extend(vllm(schemas));
    all.extend(inference_protocol(schemas));
    all
}

fn embeddings_inference(schemas: &mut Schemas) -> Vec<Operation> {
    const TAG: &str = "text-embeddings-inference";
    let error = schemas.answer::<PredictErrorBody>();
    let tokens = |operation: Operation| {
        operation.header(200, "x-compute-tokens", "Tokens that were read.", json!({"type": "integer", "minimum": 0}))
    };
    let hugging_face = Operation::post("/", "hugging_face", TAG, "Score texts as Hugging Face's Inference API does")
        .describe("The answer is a list for each text, also for one.")
        .body(
            JSON,
            schemas.body::<InferenceRequest>(),
            json!({"inputs": "Where is my order?", "parameters": {"top_k": 2}}),
        )
        .answer(200, "The queues of each text, likeliest first.", JSON, schemas.answer::<Vec<Vec<Prediction>>>())
        .problems(PREDICTING, JSON, &error);
    let predict = Operation::post("/predict", "predict", TAG, "Score texts as text-embeddings-inference does")
        .describe("A flat list of two strings is a pair of subject and body; a batch is a list of lists.")
        .body(
            JSON,
            schemas.body::<PredictRequest>(),
            json!({"inputs": [["Where is my order?"], ["Cold", "It came cold."]]}),
        )
        .answer(
            200,
            "The queues, likeliest first; of a batch a list for each input.",
            JSON,
            schemas.answer::<PredictReply>(),
        )
        .problems(PREDICTING, JSON, &error);
    let info = Operation::get("/info", "info", TAG, "What is served, as text-embeddings-inference tells it")
        .answer(200, "The router and the limits.", JSON, schemas.answer::<Info>())
        .problems(TELLING, JSON, &error);
    [tokens(hugging_face), tokens(predict), info].map(of_any_router).into()
}

/// The model of these servers' clients is a router, which the query may name.
fn of_any_router(operation: Operation) -> Operation {
    let schema = json!({"type": "string", "minLength": 1});
    operation.parameter("query", "router", "Name of the router; the default one where it is absent.", schema)
}

fn vllm(schemas: &mut Schemas) -> Vec<Operation> {
    let error = schemas.answer::<ClassifyErrorBody>();
    let mut classify = |path, id, summary| {
        of_any_router(Operation::post(path, id, "vllm", summary))
            .describe("The router stands in `model`, in the query, or in both where they say the same.")
            .body(JSON, schemas.body::<ClassifyRequest>(), json!({"input": ["Where is my order?"]}))
            .answer(200, "A class for each text.", JSON, schemas.answer::<ClassifyReply>())
            .problems(CLASSIFYING, JSON, &error)
    };
    vec![
        classify("/classify", "classify", "The likeliest queue of each text, as vLLM answers"),
        classify("/v1/classify", "classify_v1", "The likeliest queue of each text, as SGLang answers"),
    ]
}

fn inference_protocol(schemas: &mut Schemas) -> Vec<Operation> {
    const TAG: &str = "open-inference-protocol";
    let error = schemas.answer::<ProtocolErrorBody>();
    let ready = schemas.answer::<Ready>();
    let of_model = |operation: Operation, versioned: bool| {
        let name = json!({"type": "string", "minLength": 1});
        let operation = operation.parameter("path", "name", "Name of the router.", name.clone());
        if versioned { operation.parameter("path", "version", "Its version.", name) } else { operation }
    };
    let mut all = vec![
        Operation::get("/v2", "protocol_server", TAG, "What the server is").answer(
            200,
            "Name, version, extensions.",
            JSON,
            schemas.answer::<ServerMetadata>(),
        ),
        Operation::get("/v2/health/live", "protocol_live", TAG, "Whether the server lives").answer(
            200,
            "It does.",
            JSON,
            schemas.answer::<Live>(),
        ),
        Operation::get("/v2/health/ready", "protocol_ready", TAG, "Whether the server takes mail")
            .answer(200, "It does.", JSON, ready.clone())
            .answer(503, "Not yet, or no longer.", JSON, ready),
    ];
    let tensor = json!({"name": "text", "shape": [1], "datatype": "BYTES", "data": ["Where is my order?"]});
    let example = json!({"id": "42", "inputs": [tensor]});
    for (versioned, paths, ids) in [
        (
            false,
            ["/v2/models/{name}", "/v2/models/{name}/ready", "/v2/models/{name}/infer"],
            ["protocol_model", "protocol_model_ready", "protocol_infer"],
        ),
        (
            true,
            [
                "/v2/models/{name}/versions/{version}",
                "/v2/models/{name}/versions/{version}/ready",
                "/v2/models/{name}/versions/{version}/infer",
            ],
            ["protocol_version", "protocol_version_ready", "protocol_version_infer"],
        ),
    ] {
        let metadata = Operation::get(paths[0], ids[0], TAG, "What a model takes and gives")
            .answer(200, "Inputs and outputs.", JSON, schemas.answer::<ModelMetadata>())
            .problems(ABOUT_MODEL, JSON, &error);
        let ready = Operation::get(paths[1], ids[1], TAG, "Whether a model answers")
            .answer(200, "It does.", JSON, schemas.answer::<ModelReady>())
            .problems(ABOUT_MODEL, JSON, &error);
        let infer = Operation::post(paths[2], ids[2], TAG, "Score texts")
            .describe(
                "Inputs of BYTES, `text` and where wanted `subject`; outputs `label`, `score`, `probabilities` and `decision`. \
                 Inputs may come in binary behind the JSON (`Inference-Header-Content-Length`); outputs are JSON.",
            )
            .body(JSON, schemas.body::<InferRequest>(), example.clone())
            .answer(200, "The outputs asked for.", JSON, schemas.answer::<InferReply>())
            .problems(INFERRING, JSON, &error);
        all.extend([metadata, ready, infer].map(|operation| of_model(operation, versioned)));
    }
    all
}
