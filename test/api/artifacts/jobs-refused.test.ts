/** Tests conversion jobs that fail, with uploads that do not need ffmpeg. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { backOffSeconds } from '../../../src/artifacts/jobs/queue.ts'
import { openFolder } from '../../../src/storage/folder.ts'
import { toResumableStore } from '../../../src/storage/local.ts'
import { startApp } from '../../support/app.ts'
import { listJobs, openArtifact, startJobs, waitUntil } from '../../support/jobs.ts'
import { createLineLog } from '../../support/log-lines.ts'
import { makeFolder } from '../../support/process.ts'
import {
  createUpload,
  listArtifactBytes,
  postUpload,
  readArtifact,
  readStatus,
  uploadWhole,
  waitForState,
} from '../../support/uploads.ts'
import { makeZip } from '../../support/zip.ts'

// Conversions may take longer than the default timeout on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const REASON = 'The file is not a video in a supported format.'
const page = Buffer.from('<!doctype html><script>alert(1)</script>')

describe('an uploaded zip bomb', () => {
  const bomb = makeZip([{ name: 'zeros', data: Buffer.alloc(100 * 1024 ** 2) }])

  test('is deleted with its bytes and jobs', async () => {
    let calls = 0
    const onUploadComplete = () => {
      calls += 1
      return new Promise(() => {})
    }
    const { app, dataDir } = await startJobs({ options: { onUploadComplete } })
    const metadata = { kind: 'project', artifactId: randomUUID() }
    const { id } = await createUpload(app, { size: bomb.length, body: bomb, metadata })
    await waitForState(app, id, 'unknown')
    expect(await readStatus(app, id)).toEqual({ artifactId: id, state: 'unknown', reason: 'dangerous' })
    await waitUntil(async () => (await listArtifactBytes(dataDir)).kept.length === 0, 'its bytes are deleted')
    expect(await listJobs(app)).toEqual([])
    expect(calls).toBe(1)
    expect((await openArtifact(app, id)).status).toBe(404)
    expect((await postUpload(app, { metadata })).status).toBe(201)
  })
})

describe('an upload that cannot be converted', () => {
  test('is served unchanged as a download after PARLEY_CONVERSION_TRIES attempts', async () => {
    const { app, advance } = await startJobs({ env: { PARLEY_CONVERSION_TRIES: '3' } })
    const { id } = await createUpload(app, { size: page.length, body: page })
    for (const refusals of [1, 2]) {
      const isBack = async () => {
        const [job] = await listJobs(app)
        return job?.refusals === refusals && job.is_taken === 0
      }
      await waitUntil(isBack, `it was refused ${refusals} times`)
      expect(await readStatus(app, id)).toMatchObject({ state: 'processing', progress: 0 })
      // The retry delay has not passed yet, so the job must not run.
      advance(0)
      expect(await isBack()).toBe(true)
      advance(10)
    }
    await waitForState(app, id, 'ready')
    expect((await readStatus(app, id)).conversion).toEqual({ result: 'original', reason: REASON })
    expect(await listJobs(app)).toEqual([])
    const { headers, bytes } = await openArtifact(app, id)
    expect(headers.get('content-disposition')).toMatch(/^attachment/)
    expect(headers.get('content-type')).toBe('application/octet-stream')
    expect(bytes.equals(page)).toBe(true)
  })

  test('is served unchanged if it is empty', async () => {
    const app = await startApp()
    const { id } = await uploadWhole(app, Buffer.alloc(0))
    expect((await readStatus(app, id)).conversion.reason).toBe('The file is empty.')
    expect(await readArtifact(app, id)).toHaveLength(0)
  })
})

describe('a server without disk space for a converted file', () => {
  const srt = Buffer.from('1\n00:00:01,000 --> 00:00:02,000\nHi\n')

  /** Starts a service whose disk has space for uploaded captions but not for the converted file. */
  async function startWithFullDisk() {
    const disk = { freeBytes: 2 * 1024 ** 3 + srt.length, totalBytes: 1 }
    const folder = await openFolder(join(await makeFolder(), 'artifacts'), async () => disk)
    const { log, lines } = createLineLog()
    const options = { artifactStore: toResumableStore(folder, true), log }
    const { app, advance } = await startJobs({ options })
    const { id } = await createUpload(app, { size: srt.length, body: srt, metadata: { kind: 'captions' } })
    const untilFailed = (failures: number) =>
      waitUntil(async () => (await listJobs(app))[0]?.failures === failures, `it failed ${failures} times`)
    await untilFailed(1)
    return { app, advance, disk, id, untilFailed, lines }
  }

  test('converts the upload once there is space, even after many failed attempts', async () => {
    const { app, advance, disk, id, untilFailed, lines } = await startWithFullDisk()
    for (const failures of [2, 3, 4]) {
      advance(600)
      await untilFailed(failures)
    }
    expect((await listJobs(app))[0]).toMatchObject({ refusals: 0, is_taken: 0 })
    expect(lines.join()).toContain('failed to convert an upload; retrying')
    disk.freeBytes *= 2
    advance(600)
    await waitForState(app, id, 'ready')
    expect((await readStatus(app, id)).conversion).toEqual({ result: 'converted' })
  })

  test('serves the original after the 30th failed attempt', async () => {
    const { app, advance, id } = await startWithFullDisk()
    await app.service.deps.db.updateTable('jobs').set({ failures: 29 }).execute()
    advance(600)
    await waitForState(app, id, 'ready')
    const { result, reason } = (await readStatus(app, id)).conversion
    expect([result, reason]).toEqual(['original', expect.stringMatching(/could not convert this file/)])
    const { headers, bytes } = await openArtifact(app, id)
    expect(headers.get('content-disposition')).toMatch(/^attachment/)
    expect(bytes.equals(srt)).toBe(true)
  })
})

test("a failed job's retry delay doubles up to ten minutes, minus a random jitter of up to half", () => {
  const delay = (failures: number, byte: number) => backOffSeconds(failures, () => Uint8Array.of(byte))
  expect([1, 2, 3, 4, 10, 11, 5_000].map((failures) => delay(failures, 255))).toEqual([
    1, 2, 4, 8, 512, 600, 600,
  ])
  expect([1, 2, 3, 4, 10, 11, 5_000].map((failures) => delay(failures, 0))).toEqual([
    1, 1, 2, 4, 256, 300, 300,
  ])
})
