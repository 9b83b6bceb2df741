/**
 * Tests a parent key's storage quota, which is checked before an upload and again when its file is stored.
 */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock, type FakeClock } from '../../support/fake-clock.ts'
import {
  FORM_TYPE,
  field,
  filePart,
  listStored,
  type Part,
  postFiles,
  purpose,
  toChunkStream,
  toForm,
  upload,
} from '../../support/files.ts'
import { eventually, makeFolder } from '../../support/process.ts'
import { RawConnection, toRequest } from '../../support/raw-connection.ts'

interface Setup {
  readonly app: TestApp
  readonly dataDir: string
  readonly clock: FakeClock
}

async function startWithQuota(quotaBytes: number): Promise<Setup> {
  const dataDir = join(await makeFolder(), 'data')
  const clock = createFakeClock(1_800_000_000)
  const env = { PARLEY_DATA_DIR: dataDir, PARLEY_STORAGE_QUOTA_BYTES: String(quotaBytes) }
  return { app: await startApp(env, { clock }), dataDir, clock }
}

function partOf(sizeBytes: number): Part {
  return filePart(Buffer.alloc(sizeBytes, 'x'))
}

async function put(app: TestApp, sizeBytes: number, ...more: Part[]) {
  const { status, body } = await upload(app, [partOf(sizeBytes), purpose, ...more])
  return [status, body.error?.code ?? body.bytes]
}

const refused = [413, 'storage_quota_exceeded']

describe('a storage quota', () => {
  test.each([
    ['of known length', (form: Buffer) => form],
    ['of unknown length', (form: Buffer) => toChunkStream(form)],
  ])('allows uploads up to exactly its size in forms %s', async (_how, toBody) => {
    const { app, dataDir } = await startWithQuota(1_000)
    const send = async (sizeBytes: number) => {
      const { status, body } = await postFiles(app, toBody(toForm([partOf(sizeBytes), purpose])))
      return [status, body.error?.code ?? body.bytes]
    }
    expect(await send(600)).toEqual([200, 600])
    expect(await send(401)).toEqual(refused)
    expect(await send(400)).toEqual([200, 400])
    expect(await send(1)).toEqual(refused)
    expect(await send(0)).toEqual([200, 0])
    const { kept, incoming } = await listStored(dataDir)
    expect([kept.length, incoming]).toEqual([3, []])
  })

  test('is included in the error message', async () => {
    const { app } = await startWithQuota(10)
    const { status, body } = await upload(app, [partOf(11), purpose])
    expect([status, body]).toEqual([
      413,
      {
        error: {
          message: 'The storage quota of 10 bytes is exceeded; delete files to free up space.',
          type: 'invalid_request_error',
          param: null,
          code: 'storage_quota_exceeded',
        },
      },
    ])
  })

  test('applies to each key separately', async () => {
    const { app } = await startWithQuota(1_000)
    expect(await put(app, 1_000)).toEqual([200, 1_000])
    const other = { ...app, key: await createTenant(app) }
    expect(await put(other, 1_000)).toEqual([200, 1_000])
    expect(await put(app, 1)).toEqual(refused)
  })

  test('is disabled by the value 0 and does not replace the file size limit', async () => {
    const { app } = await startWithQuota(0)
    expect(await put(app, 100_000)).toEqual([200, 100_000])
    const limited = await startApp({ PARLEY_STORAGE_QUOTA_BYTES: '1000', PARLEY_MAX_FILE_BYTES: '500' })
    expect(await put(limited, 501)).toEqual([413, 'too_large'])
    expect(await put(limited, 500)).toEqual([200, 500])
    expect(await put(limited, 501)).toEqual([413, 'too_large'])
    expect(await put(limited, 400)).toEqual([200, 400])
    expect(await put(limited, 101)).toEqual(refused)
  })
})

describe('used storage quota', () => {
  test('is freed when a file is deleted', async () => {
    const { app } = await startWithQuota(1_000)
    const { body } = await upload(app, [partOf(1_000), purpose])
    expect(await put(app, 1_000)).toEqual(refused)
    await app.call('DELETE', `/v1/files/${body.id}`)
    expect(await put(app, 1_000)).toEqual([200, 1_000])
  })

  test('is freed when a file expires, before the sweeper deletes it', async () => {
    const { app, clock, dataDir } = await startWithQuota(1_000)
    const hour = [field('expires_after[anchor]', 'created_at'), field('expires_after[seconds]', '3600')]
    expect(await put(app, 1_000, ...hour)).toEqual([200, 1_000])
    clock.advance(3_599)
    expect(await put(app, 1)).toEqual(refused)
    clock.advance(1)
    expect(await put(app, 1_000)).toEqual([200, 1_000])
    expect((await listStored(dataDir)).kept).toHaveLength(2)
  })
})

describe('an upload that exceeds the quota', () => {
  const headOf = (app: TestApp, lengthBytes: number) =>
    toRequest('POST /v1/files', [
      'Host: x',
      `Authorization: Bearer ${app.key}`,
      `Content-Type: ${FORM_TYPE}`,
      `Content-Length: ${lengthBytes}`,
      'Expect: 100-continue',
    ])

  test('is rejected before 100 Continue if its Content-Length is too large', async () => {
    const { app, dataDir } = await startWithQuota(1_000)
    const connection = await RawConnection.open(app)
    connection.send(headOf(app, 10_000_000))
    const answer = await connection.receives(/^HTTP\/1\.1 413 .*storage_quota_exceeded/s)
    expect(answer).not.toContain('100 Continue')
    expect(await listStored(dataDir)).toEqual({ kept: [], incoming: [] })
  })

  test('is rejected before it is stored if a concurrent upload has used up the quota', async () => {
    const { app, dataDir } = await startWithQuota(1_000)
    const form = toForm([partOf(600), purpose])
    const [first, second] = await Promise.all([RawConnection.open(app), RawConnection.open(app)])
    for (const connection of [first, second]) {
      connection.send(headOf(app, form.length))
      await connection.receives(/100 Continue/)
      connection.send(form.subarray(0, -1))
    }
    const hasArrived = async () => (await listStored(dataDir)).incoming.length === 2
    expect(await eventually(hasArrived, true)).toBe(true)
    for (const connection of [first, second]) connection.send(form.subarray(-1))
    const answers = await Promise.all(
      [first, second].map((connection) => connection.receives(/"bytes":600|storage_quota_exceeded/)),
    )
    const statuses = answers.map((answer) => /HTTP\/1\.1 (200|413) /.exec(answer)?.[1])
    expect(statuses.sort()).toEqual(['200', '413'])
    const isCleared = async () => (await listStored(dataDir)).kept.length === 1
    expect(await eventually(isCleared, true)).toBe(true)
    expect((await listStored(dataDir)).incoming).toEqual([])
    expect((await app.call('GET', '/v1/files')).body.data).toHaveLength(1)
  })
})
