// EntryCache: signatures to entries.
#include "dispatch.h"

namespace jato::bind {

namespace {

// The words are equal; are the objects?  Plain ones compare without Python code.
int same_objects(const Record* record, Signature& signature) {
  for (size_t i = 0; i < record->objects.size(); ++i) {
    PyObject *a = record->objects[i], *b = signature.objects[i];
    if (JATO_LIKELY(a == b)) continue;
    if (!is_plain(a)) signature.hold_all();
    int equal = strictly_equal(a, b);
    if (equal <= 0) return equal;
  }
  return 1;
}

void release_record(Record* record) {
  if (--record->references > 0) return;
  for (PyObject* object : record->objects) Py_DECREF(object);
  for (PyObject* type : record->types) Py_DECREF(type);
  Py_XDECREF(record->entry);
  delete record;
}

}  // namespace

Entry* EntryCache::find(Signature& signature) {
restart:
  if (buckets_.empty()) return nullptr;
  uint64_t version = version_;
  for (Record* record = buckets_[signature.hash & (buckets_.size() - 1)]; record; record = record->next) {
    if (record->hash != signature.hash || record->words.size() != signature.words.size() ||
        std::memcmp(record->words.data(), signature.words.data(),
                    signature.words.size() * sizeof(uint64_t)) != 0)
      continue;
    ++record->references;  // user code that compares may change the cache
    int same = same_objects(record, signature);
    bool changed = version != version_;
    Entry* entry = record->entry;
    release_record(record);
    if (same < 0) return nullptr;
    if (JATO_UNLIKELY(changed)) goto restart;
    if (same) {
      if (record != newest_) touch(record);
      return entry;
    }
  }
  return nullptr;
}

Entry* EntryCache::insert(Signature& signature, Entry* entry) {
  if (Entry* stored = find(signature)) return stored;
  if (PyErr_Occurred()) return nullptr;
  if (count_ + 1 > buckets_.size()) grow();
  Record* record = new Record{};
  record->references = 1;
  record->hash = signature.hash;
  record->words.assign(signature.words.begin(), signature.words.end());
  record->objects.assign(signature.objects.begin(), signature.objects.end());
  for (PyObject* object : record->objects) Py_INCREF(object);
  for (const Leaf& leaf : signature.leaves) {
    PyObject* type = reinterpret_cast<PyObject*>(leaf.type);
    Py_INCREF(type);
    record->types.push_back(type);
  }
  Py_INCREF(entry);
  record->entry = entry;
  Record*& bucket = buckets_[record->hash & (buckets_.size() - 1)];
  record->next = bucket;
  bucket = record;
  record->older = newest_;
  if (newest_) newest_->newer = record;
  newest_ = record;
  if (!oldest_) oldest_ = record;
  ++count_;
  ++version_;
  while (count_ > capacity_ && oldest_ != newest_) drop(oldest_);
  return entry;
}

void EntryCache::touch(Record* record) {
  unlink(record);
  record->older = newest_;
  record->newer = nullptr;
  if (newest_) newest_->newer = record;
  newest_ = record;
  if (!oldest_) oldest_ = record;
}

// Takes a record out of the order of use.
void EntryCache::unlink(Record* record) {
  (record->newer ? record->newer->older : newest_) = record->older;
  (record->older ? record->older->newer : oldest_) = record->newer;
}

void EntryCache::drop(Record* record) {
  unlink(record);
  Record** place = &buckets_[record->hash & (buckets_.size() - 1)];
  while (*place != record) place = &(*place)->next;
  *place = record->next;
  --count_;
  ++version_;
  release_record(record);  // last: it may run Python code
}

void EntryCache::clear() {
  while (oldest_) drop(oldest_);
}

void EntryCache::grow() {
  std::vector<Record*> old(buckets_.empty() ? 8 : buckets_.size() * 2, nullptr);
  old.swap(buckets_);
  for (Record* record : old) {
    while (record) {
      Record* next = record->next;
      Record*& bucket = buckets_[record->hash & (buckets_.size() - 1)];
      record->next = bucket;
      bucket = record;
      record = next;
    }
  }
}

int EntryCache::traverse(visitproc visit, void* arg) {
  for (Record* record = newest_; record; record = record->older) {
    for (PyObject* object : record->objects) Py_VISIT(object);
    Py_VISIT(record->entry);
  }
  return 0;
}

}  // namespace jato::bind
