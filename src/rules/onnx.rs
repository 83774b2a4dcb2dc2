//! Rules for the ONNX flow.
