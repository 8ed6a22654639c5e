// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/thread_db.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include <dlfcn.h>
#include <thread_db.h>

#include "arch/base/log.hpp"
#include "ptrace/tracee/proc_service_handle.hpp"

namespace backtrail::tracee {
namespace {

constexpr const char* kLibraryName = "libthread_db.so.1";

// A loaded libthread_db and its functions.
class Library {
 public:
  static std::optional<Library> load(const std::string& file) {
    Library out;
    out.file_ = file;
    out.handle_.reset(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (out.handle_ == nullptr) {
      log::ptrace().debug("op=dlopen {}", ::dlerror());
      return std::nullopt;
    }
    const bool complete =
        out.find(out.init, "td_init") && out.find(out.symbol_list, "td_symbol_list") &&
        out.find(out.agent_new, "td_ta_new") && out.find(out.agent_delete, "td_ta_delete") &&
        out.find(out.thread_of, "td_ta_map_lwp2thr") &&
        out.find(out.thread_info, "td_thr_get_info") &&
        out.find(out.tls_address, "td_thr_tls_get_addr") &&
        out.find(out.tls_base, "td_thr_tlsbase");
    if (!complete || out.init() != TD_OK) return std::nullopt;
    return out;
  }

  [[nodiscard]] const std::string& file() const { return file_; }

  decltype(&::td_init) init = nullptr;
  decltype(&::td_symbol_list) symbol_list = nullptr;
  decltype(&::td_ta_new) agent_new = nullptr;
  decltype(&::td_ta_delete) agent_delete = nullptr;
  decltype(&::td_ta_map_lwp2thr) thread_of = nullptr;
  decltype(&::td_thr_get_info) thread_info = nullptr;
  decltype(&::td_thr_tls_get_addr) tls_address = nullptr;
  decltype(&::td_thr_tlsbase) tls_base = nullptr;

 private:
  template <typename Function>
  bool find(Function& out, const char* name) {
    out = std::bit_cast<Function>(::dlsym(handle_.get(), name));
    if (out == nullptr) log::ptrace().debug("op=dlsym {} lacks {}", file_, name);
    return out != nullptr;
  }
  struct Close {
    void operator()(void* handle) const { ::dlclose(handle); }
  };

  std::string file_;
  std::unique_ptr<void, Close> handle_;
};

std::vector<std::string> candidates(std::string_view search_path) {
  std::vector<std::string> out;
  while (!search_path.empty()) {
    const std::size_t end = std::min(search_path.find(':'), search_path.size());
    const std::string_view entry = search_path.substr(0, end);
    search_path.remove_prefix(std::min(end + 1, search_path.size()));
    // "$pdir", the folder of the program's libpthread, has no meaning since glibc 2.34.
    if (entry.empty() || entry == "$pdir") continue;
    if (entry == "$sdir")
      out.emplace_back(kLibraryName);
    else
      out.push_back(std::string{entry} + "/" + kLibraryName);
  }
  return out;
}

}  // namespace

struct ThreadDb::Impl {
  Library library;
  ps_prochandle process;
  td_thragent_t* agent = nullptr;

  Impl(Library lib, ps_prochandle handle) : library{std::move(lib)}, process{std::move(handle)} {}
  ~Impl() {
    if (agent != nullptr) library.agent_delete(agent);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<td_thrhandle_t> thread(pid_t tid) const {
    td_thrhandle_t handle{};
    if (library.thread_of(agent, tid, &handle) != TD_OK)
      return fail(TraceErrc::kNotFound, "find the thread in libthread_db",
                  static_cast<unsigned>(tid));
    return handle;
  }
};

ThreadDb::ThreadDb(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
ThreadDb::~ThreadDb() = default;

std::vector<std::string> ThreadDb::wanted_symbols(std::string_view search_path) {
  std::vector<std::string> out;
  for (const std::string& file : candidates(search_path)) {
    const auto library = Library::load(file);
    if (!library) continue;
    for (const char** name = library->symbol_list(); *name != nullptr; ++name)
      out.emplace_back(*name);
    break;
  }
  // Every threaded program has the version string, so it comes first.
  const auto version = std::find_if(out.begin(), out.end(), [](const std::string& name) {
    return name.ends_with("nptl_version");
  });
  if (version != out.end()) std::iter_swap(out.begin(), version);
  return out;
}

Result<std::unique_ptr<ThreadDb>> ThreadDb::open(ThreadDbHost host,
                                                 std::map<std::string, TraceeAddr> symbols,
                                                 std::string_view search_path) {
  keep_proc_service();
  const ps_prochandle process{std::move(host), std::move(symbols)};
  bool any_fits = false;
  for (const std::string& file : candidates(search_path)) {
    auto library = Library::load(file);
    if (!library) continue;
    auto impl = std::make_unique<Impl>(std::move(*library), process);
    const td_err_e result = impl->library.agent_new(&impl->process, &impl->agent);
    if (result == TD_OK) return std::unique_ptr<ThreadDb>{new ThreadDb{std::move(impl)}};
    impl->agent = nullptr;
    log::ptrace().debug("pid={} op=td_ta_new {} result={}", process.host.pid, file,
                        static_cast<int>(result));
    any_fits = any_fits || result != TD_VERSION;
  }
  return fail(any_fits ? TraceErrc::kNotFound : TraceErrc::kUnsupported, "open libthread_db",
              static_cast<unsigned>(process.host.pid));
}

Result<std::vector<std::uint8_t>> ThreadDb::handle(pid_t tid) {
  BT_TRY(const td_thrhandle_t thread, impl_->thread(tid));
  td_thrinfo_t info{};
  // A thread has no pthread_t before it has set itself up.
  if (impl_->library.thread_info(&thread, &info) != TD_OK || info.ti_tid == 0)
    return fail(TraceErrc::kNotFound, "read a thread's pthread_t", static_cast<unsigned>(tid));
  const auto bytes = std::bit_cast<std::array<std::uint8_t, sizeof info.ti_tid>>(info.ti_tid);
  return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
}

Result<TraceeAddr> ThreadDb::tls_address(pid_t tid, std::uint64_t offset, TraceeAddr link_map) {
  BT_TRY(const td_thrhandle_t thread, impl_->thread(tid));
  psaddr_t address = nullptr;
  td_err_e result = TD_OK;
  if (link_map != TraceeAddr{}) {
    result = impl_->library.tls_address(&thread, std::bit_cast<psaddr_t>(link_map.value()), offset,
                                        &address);
  } else {
    // A static program: its own TLS block is the first.
    result = impl_->library.tls_base(&thread, 1, &address);
    if (result == TD_OK) address = static_cast<char*>(address) + offset;
  }
  if (result == TD_OK) return TraceeAddr{std::bit_cast<std::uint64_t>(address)};
  return fail(result == TD_TLSDEFER ? TraceErrc::kNotFound : TraceErrc::kUnsupported,
              "find a thread-local variable", static_cast<unsigned>(tid));
}

const std::string& ThreadDb::library() const {
  return impl_->library.file();
}

}  // namespace backtrail::tracee
