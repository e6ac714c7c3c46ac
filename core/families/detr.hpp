#pragma once

#include "core/layers/net.hpp"

/// What other classes that detect objects have of DETR's (detr.cpp).
namespace tidemark {

/// The classes and boxes of the objects in a micro batch's pictures, as net.labels and net.more_labels.
void object_labels(Net& net);
/// DetrMLPPredictionHead.forward of three layers, and the sigmoid of its result: [B, queries, 4].
Tensor box_predictor(Net& net, const Tensor& hidden);
/// ForObjectDetectionLoss of logits [B, queries, classes] and boxes.
Tensor detection_loss(Net& net, const Tensor& logits, const Tensor& boxes);

}  // namespace tidemark
