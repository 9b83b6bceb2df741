/** Tests conversion jobs for uploads of every kind: results, progress and cleanup. */

import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import sharp from 'sharp'
import { describe, expect, test, vi } from 'vitest'
import { openResumableStore } from '../../src/storage/local.ts'
import { startApp } from '../support/app.ts'
import { makeVideo, probe } from '../support/conversion.ts'
import {
  getRow,
  listJobs,
  listWorkFolders,
  makeGate,
  openArtifact,
  startJobs,
  waitUntil,
  watchUntil,
} from '../support/jobs.ts'
import { makeFolder } from '../support/process.ts'
import { createUpload, listArtifactBytes, readStatus, uploadWhole, waitForState } from '../support/uploads.ts'
import { makeZip } from '../support/zip.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const SRT = '1\r\n00:00:01,000 --> 00:00:02,000\r\nHello <i>you</i>\r\n'
const VTT = '\uFEFFWEBVTT\n\nNOTE kept\n\n00:01.000 --> 00:02.000\nHello\n'

/** Creates a video that browsers cannot play without a conversion. */
async function makeOldVideo(): Promise<Buffer> {
  const path = join(await makeFolder(), 'clip.mkv')
  return readFile(await makeVideo(path, ['-c:v', 'mpeg4', '-c:a', 'flac']))
}

describe('an uploaded video', () => {
  test('is served as an MP4 with a poster, and the original is deleted', async () => {
    const { app, dataDir } = await startJobs()
    const bytes = await makeOldVideo()
    const { id } = await uploadWhole(app, bytes, { metadata: { filename: 'Ferien.mkv' } })
    expect(await readStatus(app, id)).toEqual({
      artifactId: id,
      state: 'ready',
      kind: 'video',
      bytesReceived: bytes.length,
      size: bytes.length,
      sha256: createHash('sha256').update(bytes).digest('hex'),
      acknowledged: true,
      conversion: { result: 'converted' },
    })

    const whole = await openArtifact(app, id)
    expect(whole.headers.get('content-type')).toBe('video/mp4')
    expect(whole.headers.get('content-disposition')).toMatch(/^inline; filename="?Ferien\.mp4"?$/)
    const copy = join(await makeFolder(), 'served.mp4')
    await writeFile(copy, whole.bytes)
    expect((await probe(copy)).streams).toMatchObject([{ codec_name: 'h264' }, { codec_name: 'aac' }])
    const part = await openArtifact(app, id, { Range: 'bytes=100-299' })
    expect(part.status).toBe(206)
    expect(part.bytes.equals(whole.bytes.subarray(100, 300))).toBe(true)

    const poster = await openArtifact(app, `${id}/poster`)
    expect(poster.headers.get('content-type')).toBe('image/jpeg')
    expect(await sharp(poster.bytes).metadata()).toMatchObject({ format: 'jpeg', width: 320, height: 240 })

    const row = await getRow(app)
    expect(row.kept_bytes).toBe(whole.bytes.length + poster.bytes.length)
    await waitUntil(
      async () => (await listArtifactBytes(dataDir)).kept.length === 2,
      'the original is deleted',
    )
    expect((await listArtifactBytes(dataDir)).kept.sort()).toEqual([row.served_blob, row.poster_blob].sort())
    expect(await listWorkFolders(dataDir)).toEqual([])
    expect(await listJobs(app)).toEqual([])
  })

  test('is converted even if the blob store is not a local folder', async () => {
    const root = await makeFolder()
    const { blobs, resumable } = await openResumableStore(root, 'elsewhere', false)
    const hidden = Object.assign(Object.create(blobs), { findPath: undefined })
    const app = await startApp({}, { artifactStore: { blobs: hidden, resumable } })
    const { id } = await uploadWhole(app, await makeOldVideo())
    expect((await readStatus(app, id)).conversion).toEqual({ result: 'converted' })
    expect((await openArtifact(app, id)).headers.get('content-type')).toBe('video/mp4')
  })

  test('reports progress that never decreases', async () => {
    const gate = await makeGate(
      ['500000', '1000000', '300000', '1500000'].map((us) => `echo out_time_us=${us}; sleep 0.4`).join('\n'),
    )
    const app = await startApp(gate.env)
    const bytes = await makeOldVideo()
    const { id } = await createUpload(app, { size: bytes.length, body: bytes })
    const watching = watchUntil(app, id, ({ state }) => state === 'ready')
    await gate.open()
    const statuses = await watching
    const shares = statuses.filter(({ state }) => state === 'processing').map(({ progress }) => progress)
    expect(shares.some((share) => share > 0 && share < 1)).toBe(true)
    expect(shares).toEqual(shares.toSorted((one, other) => one - other))
    expect(statuses.at(-1).progress).toBeUndefined()
  })
})

describe('uploaded videos', () => {
  test('are converted two at a time', async () => {
    const gate = await makeGate()
    const { app, dataDir } = await startJobs({ env: gate.env })
    const bytes = await makeOldVideo()
    const begun = []
    for (let count = 0; count < 4; count++)
      begun.push(await createUpload(app, { size: bytes.length, body: bytes }))
    await waitUntil(async () => (await listWorkFolders(dataDir)).length === 2, 'two conversions run')
    const jobs = await listJobs(app)
    expect(jobs.filter((job) => job.is_taken === 1)).toHaveLength(2)
    expect(jobs).toHaveLength(4)
    await gate.open()
    for (const { id } of begun) await waitForState(app, id, 'ready')
  })
})

describe('the inline download', () => {
  const picture = sharp({ create: { width: 60, height: 40, channels: 3, background: 'red' } })

  test('of a thumbnail is re-encoded without metadata', async () => {
    const app = await startApp()
    const png = await picture
      .clone()
      .withExif({ IFD0: { Artist: 'Ada' } })
      .png()
      .toBuffer()
    const { id } = await uploadWhole(app, png, { metadata: { kind: 'thumbnail', filename: 'a.png' } })
    expect((await readStatus(app, id)).conversion).toEqual({ result: 'converted' })
    const { headers, bytes } = await openArtifact(app, id)
    expect(headers.get('content-type')).toBe('image/webp')
    expect(headers.get('content-disposition')).toMatch(/^inline; filename="?a\.webp"?$/)
    expect(await sharp(bytes).metadata()).toMatchObject({ format: 'webp', width: 60, height: 40 })
    expect(bytes.includes('Ada')).toBe(false)
    expect((await openArtifact(app, `${id}/poster`)).status).toBe(404)
  })

  test('of SubRip captions is WebVTT', async () => {
    const app = await startApp()
    const { id } = await uploadWhole(app, Buffer.from(SRT), { metadata: { kind: 'captions' } })
    expect((await readStatus(app, id)).conversion).toEqual({ result: 'converted' })
    const { headers, bytes } = await openArtifact(app, id)
    expect(headers.get('content-type')).toMatch(/^text\/vtt/)
    expect(headers.get('content-disposition')).toMatch(/^inline/)
    expect(bytes.toString()).toMatch(/^WEBVTT\n\n00:00:01\.000 --> 00:00:02\.000\nHello <i>you<\/i>\n/)
  })

  test('of WebVTT captions is byte for byte identical to the upload', async () => {
    const { app, dataDir } = await startJobs()
    const { id } = await uploadWhole(app, Buffer.from(VTT), { metadata: { kind: 'captions' } })
    expect((await readStatus(app, id)).conversion).toEqual({ result: 'original' })
    const { headers, bytes } = await openArtifact(app, id)
    expect(headers.get('content-disposition')).toMatch(/^inline; filename="?clip\.mp4"?$/)
    expect(bytes.equals(Buffer.from(VTT))).toBe(true)
    const row = await getRow(app)
    expect([row.kept_bytes, row.served_blob]).toEqual([bytes.length, row.blob])
    expect((await listArtifactBytes(dataDir)).kept).toEqual([row.blob])
  })
})

test.each([
  ['JSON', Buffer.from('{"layers":[1,2]}'), 'application/json'],
  ['a ZIP archive', makeZip([{ name: 'project.json', data: '{}' }]), 'application/zip'],
])('a project that is %s is served unchanged as an attachment', async (_what, bytes, mediaType) => {
  const app = await startApp()
  const { id } = await uploadWhole(app, bytes, { metadata: { kind: 'project' } })
  expect((await readStatus(app, id)).conversion).toEqual({ result: 'original' })
  const { headers, bytes: served } = await openArtifact(app, id)
  expect(headers.get('content-type')).toBe(mediaType)
  expect(headers.get('content-disposition')).toMatch(/^attachment/)
  expect(served.equals(bytes)).toBe(true)
})
