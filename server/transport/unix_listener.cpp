// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>
#include <system_error>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>
#include <boost/asio/local/stream_protocol.hpp>

#include "server/session/notices.hpp"
#include "server/transport/listener.hpp"
#include "server/transport/socket_accept.hpp"

namespace backtrail::server {
namespace {

namespace asio = boost::asio;
using asio::local::stream_protocol;
using boost::system::error_code;

std::string failure(const std::string& path, const std::string& why) {
  return fmt::format("cannot listen on unix:{}: {}", path, why);
}

std::string errno_text(int number) {
  return std::generic_category().message(number);
}

bool somebody_listens(asio::io_context& io, const std::string& path) {
  stream_protocol::socket probe{io};
  error_code error;
  probe.connect(stream_protocol::endpoint{path}, error);
  return error != asio::error::connection_refused &&
         error != boost::system::errc::no_such_file_or_directory;
}

/// Removes the socket that a killed server has left; any other file at the path is an error.
Explained<void> clear_path(asio::io_context& io, const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return explain(failure(path, errno_text(errno)));
  }
  if (!S_ISSOCK(status.st_mode)) {
    return explain(failure(path, "the path exists and is not a socket; choose another one"));
  }
  if (somebody_listens(io, path)) {
    return explain(failure(path, "another program listens there; choose another path"));
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return explain(failure(path, "cannot remove the old socket: " + errno_text(errno)));
  }
  return {};
}

class UnixListener final : public Listener {
 public:
  UnixListener(stream_protocol::acceptor acceptor, std::string path)
      : acceptor_{std::move(acceptor)}, path_{std::move(path)} {}
  ~UnixListener() override { UnixListener::close(); }

  void announce() const override { notices::listening_at("unix:" + path_); }
  void accept(AcceptHandler handler) override {
    accept_client(acceptor_, std::move(handler), [path = path_](stream_protocol::socket&) {
      notices::debugging_using("unix:" + path);
    });
  }
  void close() override {
    if (!acceptor_.is_open()) return;
    error_code ignored;
    acceptor_.close(ignored);
    ::unlink(path_.c_str());
  }
  [[nodiscard]] bool ends_with_client() const override { return false; }
  [[nodiscard]] int fd() const override { return listening_fd(acceptor_); }
  [[nodiscard]] std::uint16_t port() const override { return 0; }

 private:
  mutable stream_protocol::acceptor acceptor_;
  std::string path_;
};

}  // namespace

Explained<std::unique_ptr<Listener>> open_unix_listener(asio::io_context& io,
                                                        const CommSpec& comm) {
  if (auto cleared = clear_path(io, comm.path); !cleared) return explain(cleared.error());
  stream_protocol::acceptor acceptor{io};
  error_code error;
  acceptor.open(stream_protocol{}, error);
  if (!error) {
    keep_from_programs(acceptor.native_handle());
    // Only this user may connect: a client can do everything that this user can.
    const mode_t mask = ::umask(0177);
    acceptor.bind(stream_protocol::endpoint{comm.path}, error);
    ::umask(mask);
  }
  if (!error) acceptor.listen(1, error);
  if (error) return explain(failure(comm.path, error.message()));
  return std::make_unique<UnixListener>(std::move(acceptor), comm.path);
}

}  // namespace backtrail::server
