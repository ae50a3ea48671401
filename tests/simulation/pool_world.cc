#include "tests/simulation/pool_world.h"

#include <utility>

#include <fmt/format.h>

namespace fluxqueue::simulation {

std::map<std::string, PoolWorld::Job> PoolWorld::DrawJobs(Chance& chance) {
  std::map<std::string, Job> jobs;
  for (int i = 0; i < kJobs; ++i) {
    Job& job = jobs[fmt::format("j{:02}", i)];
    job.slots = static_cast<uint32_t>(chance.Between(1, 4));
    job.cpu = 500 * chance.Between(1, 6);
    job.run = Millis(chance.Between(500, 15'000));
    job.submit_at = Millis(chance.Between(0, 40'000));
  }
  return jobs;
}

PoolWorld::PoolWorld(const Trial& trial, std::map<std::string, Job> jobs)
    : World(trial), jobs_(std::move(jobs)) {
  for (const auto& [id, job] : jobs_) {
    scheduler().After(job.submit_at, [this, &id = id] { Submit(id); });
  }
  database().OnCommit([this] { Check(); });
}

void PoolWorld::Submit(const std::string& id) {
  Job& job = jobs_.at(id);
  job.submitted = true;
  if (tells()) Say(fmt::format("{} is submitted: {} slots of {}", id, job.slots, job.cpu));
}

bool PoolWorld::Runs(const std::string& id, uint32_t attempt) {
  const Job& job = jobs_.at(id);
  return job.attempt == attempt && !job.ended;
}

void PoolWorld::StrikeNode(const Fault& fault) {
  TakeNode(fault.node, true);
  scheduler().After(fault.time, [this, node = fault.node] { TakeNode(node, false); });
}

void PoolWorld::TakeNode(int number, bool away) {
  Node& node = nodes_[static_cast<size_t>(number)];
  node.away = away;
  if (!away) ++node.generation;
  if (tells()) Say(fmt::format("n{} {}", number, away ? "goes" : "comes"));
}

void PoolWorld::StartJob(const std::string& id, uint32_t attempt) {
  Job& job = jobs_.at(id);
  if (job.ended || job.attempt == attempt) return;
  if (attempt != 0 && job.attempt != 0 && job.attempt != attempt) {
    Fail(fmt::format("{} is started twice", id));
  }
  job.attempt = attempt;
  if (tells()) {
    Say(attempt == 0 ? fmt::format("{} is stopped", id)
                     : fmt::format("{} runs, attempt {}", id, attempt));
  }
  if (attempt == 0) return;
  scheduler().After(job.run, [&job, attempt] {
    if (job.attempt == attempt) job.ended = true;
  });
}

bool PoolWorld::IsOver(const std::string& id) {
  const QueueTables::Job* row = database().Of<QueueTables>().jobs.Find(id);
  return jobs_.at(id).ended && row != nullptr && !row->live();
}

bool PoolWorld::Done() {
  for (const auto& [id, job] : jobs_) {
    if (!IsOver(id)) return false;
  }
  for (const auto& [key, row] : database().Of<MatcherTables>().allocations.rows()) {
    if (!row.row.released) return false;
  }
  return true;
}

std::string PoolWorld::WhatIsLeft() {
  std::string text;
  for (const auto& [id, job] : jobs_) {
    const bool known = database().Of<QueueTables>().jobs.Has(id);
    if (!known && !IsOver(id)) text += id + " unknown; ";
  }
  for (const auto& [id, row] : database().Of<QueueTables>().jobs.rows()) {
    if (!row.live()) continue;
    text += fmt::format("{} {} {}; ", NameOf(id), model::Name(row.job.state), row.job.reason);
  }
  return text;
}

}  // namespace fluxqueue::simulation
