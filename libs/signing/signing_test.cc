#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/signing/batch.h"
#include "libs/signing/keys.h"
#include "libs/signing/testing_keys.h"

namespace fluxqueue::signing {
namespace {

using ::testing::HasSubstr;

class SigningTest : public ::testing::Test {
 protected:
  SigningTest()
      : files_({"queue", "cleanup"}),
        queue_(*Signer::Read(files_.key_of("queue"))),
        cleanup_(*Signer::Read(files_.key_of("cleanup"))),
        keys_(*Keys::Read(files_.keys())) {}

  static std::vector<Record> RecordsOf(const std::vector<std::string>& values) {
    std::vector<Record> records;
    for (const std::string& value : values) records.push_back({"topic", "3", value});
    return records;
  }
  std::string WhyNot(const std::string& stream, const Record& record, const std::string& proof) {
    BatchVerifier verifier(keys_);
    return std::string(verifier.Check(stream, record, proof).message());
  }

  TestingKeys files_;
  const Signer queue_;
  const Signer cleanup_;
  const Keys keys_;
};

TEST_F(SigningTest, EachRecordOfABatchIsProvenAlone) {
  for (size_t count = 1; count <= 20; ++count) {
    std::vector<std::string> values;
    for (size_t i = 0; i < count; ++i) values.push_back(fmt::format("value {}", i));
    const std::vector<Record> records = RecordsOf(values);
    const std::vector<std::string> proofs = SignBatch(queue_, records);
    ASSERT_EQ(proofs.size(), count);
    BatchVerifier verifier(keys_);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(WhyNot("queue/3", records[i], proofs[i]), "") << i << " of " << count;
      EXPECT_TRUE(verifier.Check("queue/3", records[i], proofs[i]).ok());
      // Of another place in the batch, or cut.
      if (count > 1) {
        EXPECT_THAT(WhyNot("queue/3", records[i], proofs[(i + 1) % count]), HasSubstr("signature"));
        EXPECT_NE(WhyNot("queue/3", records[i], proofs[i].substr(0, proofs[i].size() - 1)), "");
      }
    }
  }
}

TEST_F(SigningTest, NobodySignsForAnother) {
  const std::vector<std::string> values = {"a", "b", "c"};
  const std::vector<Record> records = RecordsOf(values);
  const std::string by_queue = SignBatch(queue_, records)[1];
  EXPECT_EQ(WhyNot("queue/3", records[1], by_queue), "");
  EXPECT_EQ(WhyNot("queue/3", records[1], SignBatch(cleanup_, records)[1]),
            "its signature is not of queue");
  EXPECT_EQ(WhyNot("cleanup/watch", records[1], by_queue), "its signature is not of cleanup");
  EXPECT_EQ(WhyNot("queue/3", records[1], ""), "it is not signed by queue");
  EXPECT_EQ(WhyNot("stranger/1", records[1], by_queue),
            "nobody is known by the name 'stranger' that its stream has");
  // What it says and where it goes count, each by itself.
  EXPECT_NE(WhyNot("queue/3", {"topic", "3", "B"}, by_queue), "");
  EXPECT_NE(WhyNot("queue/3", {"topic", "4", "b"}, by_queue), "");
  EXPECT_NE(WhyNot("queue/3", {"topi", "c3", "b"}, by_queue), "");
  EXPECT_NE(WhyNot("queue/3", {"topic3", "b"}, by_queue), "");
}

TEST_F(SigningTest, GarbageIsNoProof) {
  const std::vector<std::string> values = {"a", "b", "c"};
  const std::vector<Record> records = RecordsOf(values);
  const std::string good = SignBatch(queue_, records)[2];
  BatchVerifier verifier(keys_);
  ASSERT_TRUE(verifier.Check("queue/3", records[2], good).ok());
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_FALSE(verifier.Check("queue/3", records[2], bad).ok()) << i;
  }
  for (const size_t size : {1U, 63U, 64U, 71U, 72U, 100U, 4000U}) {
    EXPECT_FALSE(verifier.Check("queue/3", records[2], std::string(size, '\xff')).ok()) << size;
  }
}

TEST_F(SigningTest, AKeyIsChangedWhileBothAreGood) {
  files_.Make("queue-next", "queue");
  const Keys both = *Keys::Read(files_.keys());
  const Signer next = *Signer::Read(files_.key_of("queue-next"));
  EXPECT_TRUE(both.Check("queue", "text", queue_.Sign("text")));
  EXPECT_TRUE(both.Check("queue", "text", next.Sign("text")));
  EXPECT_FALSE(keys_.Check("queue", "text", next.Sign("text")));
}

TEST_F(SigningTest, FilesThatAreNoKeysAreNamed) {
  EXPECT_THAT(Message(Signer::Read("/nowhere/key").status()), HasSubstr("/nowhere/key: the file"));
  EXPECT_THAT(Message(Keys::Read("/nowhere").status()), HasSubstr("/nowhere: No such"));
  const std::string public_key = files_.keys() + "/queue.pem";
  EXPECT_THAT(Message(Signer::Read(public_key).status()), HasSubstr("PRIVATE KEY"));
  std::ofstream(public_key, std::ios::app) << "-----BEGIN PUBLIC KEY-----\ncut";
  EXPECT_THAT(Message(Keys::Read(files_.keys()).status()), HasSubstr("queue.pem: allowed are PEM"));
  std::filesystem::copy(files_.key_of("cleanup"), files_.keys() + "/private.pem");
  std::filesystem::remove(public_key);
  EXPECT_THAT(Message(Keys::Read(files_.keys()).status()), HasSubstr("private.pem: allowed are"));
  const std::string rsa = files_.keys() + "/../rsa.key";
  ASSERT_EQ(
      std::system(
          fmt::format("openssl genpkey -algorithm ec -pkeyopt ec_paramgen_curve:P-256 -out {}", rsa)
              .c_str()),
      0);
  EXPECT_THAT(Message(Signer::Read(rsa).status()), HasSubstr("allowed is Ed25519"));
}

}  // namespace
}  // namespace fluxqueue::signing
