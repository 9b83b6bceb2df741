/** Tests the thread that computes the checksums of uploads. */
import { createHash } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { digestFile } from '../../src/artifacts/jobs/digest.ts'

test('the digest of a file is its SHA-256', async () => {
  const path = join(tmpdir(), `parley-digest-${process.pid}`)
  onTestFinished(() => rm(path, { force: true }))
  await writeFile(path, 'hello')
  expect(await digestFile(path, new AbortController().signal)).toBe(
    createHash('sha256').update('hello').digest('hex'),
  )
})

test('a thread that fails while it is stopped does not cause an uncaught exception', async () => {
  const stop = new AbortController()
  const digest = digestFile(join(tmpdir(), 'missing', 'file'), stop.signal)
  // Blocks this thread, so that the other one fails before this one reads its messages.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
  stop.abort(new Error('closing'))
  // An uncaught exception would fail the test run.
  await expect(digest).rejects.toThrow('closing')
})
