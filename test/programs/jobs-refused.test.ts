/** Tests conversion jobs that are cancelled or that fail. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { NO_FFMPEG } from '../../src/conversion/video.ts'
import { startApp } from '../support/app.ts'
import { listProcesses, makeVideo } from '../support/conversion.ts'
import {
  getRow,
  listJobs,
  listWorkFolders,
  makeGate,
  openArtifact,
  startJobs,
  waitUntil,
} from '../support/jobs.ts'
import { makeFolder } from '../support/process.ts'
import { createUpload, listArtifactBytes, readStatus, uploadWhole, waitForState } from '../support/uploads.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

describe('an upload that cannot be converted', () => {
  test('is served as an attachment even if browsers could display its media type', async () => {
    const app = await startApp()
    const path = await makeVideo(join(await makeFolder(), 'clip.mp4'))
    const bytes = (await readFile(path)).subarray(0, 5_000)
    const { id } = await uploadWhole(app, bytes)
    const { headers, bytes: served } = await openArtifact(app, id)
    expect(headers.get('content-type')).toBe('video/mp4')
    expect(headers.get('content-disposition')).toMatch(/^attachment/)
    expect(served.equals(bytes)).toBe(true)
  })

  test('is served immediately when ffmpeg is missing', async () => {
    const path = await makeVideo(join(await makeFolder(), 'clip.mp4'))
    const env = { PATH: await makeFolder(), PARLEY_CONVERSION_TRIES: '3' }
    // The fake clock does not advance, so the server cannot make a second attempt.
    const { app } = await startJobs({ env })
    const { id } = await uploadWhole(app, await readFile(path))
    expect((await readStatus(app, id)).conversion).toEqual({ result: 'original', reason: NO_FFMPEG })
    expect((await openArtifact(app, id)).headers.get('content-disposition')).toMatch(/^attachment/)
  })
})

describe('a running conversion', () => {
  async function startConversion() {
    const gate = await makeGate()
    const { app, dataDir } = await startJobs({ env: gate.env })
    const bytes = await readFile(await makeVideo(join(gate.folder, 'clip.mp4')))
    const { id } = await createUpload(app, { size: bytes.length, body: bytes })
    const isRunning = async () => (await listProcesses(join(gate.env.PATH, 'ffmpeg'))).length > 0
    await waitUntil(isRunning, 'ffmpeg runs')
    return { app, dataDir, id, isRunning }
  }

  test('is killed when its artifact is deleted and leaves no files or rows', async () => {
    const { app, dataDir, id, isRunning } = await startConversion()
    expect((await app.call('DELETE', `/artifacts/${id}`)).status).toBe(200)
    expect(await isRunning()).toBe(false)
    expect(await listArtifactBytes(dataDir)).toEqual({ kept: [], growing: [] })
    expect(await listWorkFolders(dataDir)).toEqual([])
    expect(await listJobs(app)).toEqual([])
    expect((await readStatus(app, id)).state).toBe('unknown')
  })

  test('is returned to the queue when the server stops', async () => {
    const { app, dataDir, id, isRunning } = await startConversion()
    await app.close()
    expect(await isRunning()).toBe(false)
    expect(await listWorkFolders(dataDir)).toEqual([])
    const next = await startJobs({ env: { PARLEY_DATA_DIR: dataDir, PARLEY_PARENT_KEY: app.key } })
    await waitForState(next.app, id, 'ready')
    expect((await readStatus(next.app, id)).conversion).toEqual({ result: 'converted' })
    expect((await getRow(next.app)).state).toBe('ready')
  })
})
