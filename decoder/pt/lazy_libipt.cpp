// SPDX-License-Identifier: Apache-2.0
// Loads libipt's functions on first use: only traces of Intel PT need it.

#include <intel-pt.h>

#include "arch/base/lazy_library.hpp"

using backtrail::call_lazily;

extern "C" {

int pt_cpu_errata(pt_errata* errata, const pt_cpu* cpu) {
  return call_lazily<&pt_cpu_errata>(BT_LIBIPT, "pt_cpu_errata", errata, cpu);
}
int pt_image_add_file(pt_image* image, const char* file, uint64_t offset, uint64_t size,
                      const pt_asid* asid, uint64_t address) {
  return call_lazily<&pt_image_add_file>(BT_LIBIPT, "pt_image_add_file", image, file, offset, size,
                                         asid, address);
}
int pt_image_set_callback(pt_image* image, read_memory_callback_t* read, void* context) {
  return call_lazily<&pt_image_set_callback>(BT_LIBIPT, "pt_image_set_callback", image, read,
                                             context);
}
pt_block_decoder* pt_blk_alloc_decoder(const pt_config* config) {
  return call_lazily<&pt_blk_alloc_decoder>(BT_LIBIPT, "pt_blk_alloc_decoder", config);
}
void pt_blk_free_decoder(pt_block_decoder* decoder) {
  call_lazily<&pt_blk_free_decoder>(BT_LIBIPT, "pt_blk_free_decoder", decoder);
}
int pt_blk_sync_forward(pt_block_decoder* decoder) {
  return call_lazily<&pt_blk_sync_forward>(BT_LIBIPT, "pt_blk_sync_forward", decoder);
}
int pt_blk_sync_set(pt_block_decoder* decoder, uint64_t offset) {
  return call_lazily<&pt_blk_sync_set>(BT_LIBIPT, "pt_blk_sync_set", decoder, offset);
}
int pt_blk_get_sync_offset(const pt_block_decoder* decoder, uint64_t* offset) {
  return call_lazily<&pt_blk_get_sync_offset>(BT_LIBIPT, "pt_blk_get_sync_offset", decoder, offset);
}
int pt_blk_get_offset(const pt_block_decoder* decoder, uint64_t* offset) {
  return call_lazily<&pt_blk_get_offset>(BT_LIBIPT, "pt_blk_get_offset", decoder, offset);
}
pt_image* pt_blk_get_image(pt_block_decoder* decoder) {
  return call_lazily<&pt_blk_get_image>(BT_LIBIPT, "pt_blk_get_image", decoder);
}
int pt_blk_next(pt_block_decoder* decoder, pt_block* block, size_t size) {
  return call_lazily<&pt_blk_next>(BT_LIBIPT, "pt_blk_next", decoder, block, size);
}
int pt_blk_event(pt_block_decoder* decoder, pt_event* event, size_t size) {
  return call_lazily<&pt_blk_event>(BT_LIBIPT, "pt_blk_event", decoder, event, size);
}

}  // extern "C"
