// SPDX-License-Identifier: Apache-2.0
#include "server/transport/outbox.hpp"

#include <utility>

#include "arch/base/log.hpp"

namespace backtrail::server {
namespace {

/// Most times that a packet is sent again. gdb itself gives up after three.
constexpr int kMaxResends = 10;

}  // namespace

void Outbox::add_packet(std::string frame, bool acknowledged) {
  add(Item{std::move(frame), acknowledged});
}

void Outbox::add_notification(std::string frame) {
  add(Item{std::move(frame), false});
}

void Outbox::add(Item item) {
  held_bytes_ += item.frame.size();
  held_.push_back(std::move(item));
  advance();
}

void Outbox::advance() {
  while (with_client_.empty() && !held_.empty()) {
    Item item = std::move(held_.front());
    held_.pop_front();
    held_bytes_ -= item.frame.size();
    ready_ += item.frame;
    if (item.acknowledged) {
      with_client_ = std::move(item.frame);
      resends_ = 0;
    }
  }
}

void Outbox::on_ack() {
  with_client_.clear();
  advance();
}

void Outbox::on_nack() {
  if (with_client_.empty()) return;
  if (resends_ >= kMaxResends) {
    if (resends_ == kMaxResends) {
      ++resends_;
      log::rsp().warn("op=nack the client keeps refusing a packet; it is not sent again");
    }
    return;
  }
  ++resends_;
  ready_ += with_client_;
}

void Outbox::release_all() {
  with_client_.clear();
  for (Item& item : held_) item.acknowledged = false;
  advance();
}

std::string Outbox::take_ready() {
  return std::exchange(ready_, {});
}

}  // namespace backtrail::server
