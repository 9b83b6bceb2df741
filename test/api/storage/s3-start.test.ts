/** Tests that a server claims its prefix in a bucket at startup and explains why a bucket is unusable. */

import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { StartupError } from '../../../src/lib/errors.ts'
import { adoptPlaces } from '../../../src/storage/probe-s3.ts'
import { S3Server } from '../../support/s3-server.ts'
import {
  listNames,
  MIB,
  openStore,
  readBlob,
  type StoreOptions,
  shortTimeouts,
  storeRandomBlob,
} from '../../support/s3-store.ts'

const MARK = 'files/installation'

async function startupError(server: S3Server, options?: StoreOptions): Promise<string> {
  const error = await openStore(server, options).catch((thrown) => thrown)
  expect(error).toBeInstanceOf(StartupError)
  return error.message
}

describe('startup fails with a specific error for', () => {
  test.each([
    [404, 'NoSuchBucket', /^The bucket test-bucket at http\S+ does not exist; .*S3_BUCKET/],
    [
      403,
      'AccessDenied',
      /denies access with these credentials \(AccessDenied\); they need the permissions s3:ListBucket,/,
    ],
    [403, 'SignatureDoesNotMatch', /rejects the credentials .*AWS_SECRET_ACCESS_KEY/],
    [301, 'PermanentRedirect', /is in another region .*S3_REGION/],
    [400, 'AuthorizationHeaderMalformed', /is in another region .*S3_REGION/],
    [500, 'InternalError', /is not usable \(InternalError.*\); check S3_ENDPOINT/],
  ])('the S3 response %i %s', async (status, code, sentence) => {
    const server = await S3Server.start()
    server.fail('GetObject', { status, code })
    expect(await startupError(server)).toMatch(sentence)
  })

  test('a bucket that does not exist', async () => {
    const server = await S3Server.start()
    expect(await startupError(server, { config: { bucket: 'another' } })).toMatch(
      /bucket another .* does not exist/,
    )
  })

  test('an unknown access key', async () => {
    const server = await S3Server.start()
    const credentials = { ...server.config.credentials, accessKeyId: 'AKIANOBODY' } as const
    const sentence = await startupError(server, {
      config: { credentials: { secretAccessKey: '', sessionToken: undefined, ...credentials } },
    })
    expect(sentence).toMatch(/rejects the credentials \(InvalidAccessKeyId\)/)
    expect(sentence).not.toContain('AKIA')
  })

  test('a server that is unreachable or does not respond', async () => {
    const server = await S3Server.start()
    server.fail('GetObject', 'hang')
    expect(await startupError(server, { timings: shortTimeouts })).toMatch(/is not usable \(TimeoutError/)
    server.stop()
    expect(await startupError(server)).toMatch(/is not usable \(ECONNREFUSED/)
  })

  test.each([
    'http://169.254.169.254',
    'http://[fe80::1]:9000',
    'http://[::ffff:169.254.1.1]',
    'http://[fd00:ec2::254]',
  ])('an endpoint at a link-local or metadata address: %s', async (endpoint) => {
    const server = await S3Server.start()
    expect(await startupError(server, { config: { endpoint } })).toMatch(/link-local or metadata address/)
  })
})

describe('a prefix in a bucket', () => {
  test('is claimed by the installation if it is empty', async () => {
    const server = await S3Server.start()
    const { name, bytes } = await storeRandomBlob(await openStore(server), 10)
    expect(server.objects.get(MARK)?.bytes.toString()).toBe('ours\n')
    const again = await openStore(server)
    expect((await readBlob(again, name)).equals(bytes)).toBe(true)
  })

  test('is not changed if it belongs to another installation', async () => {
    const server = await S3Server.start()
    const { name } = await storeRandomBlob(await openStore(server), 10)
    const sentence = await startupError(server, { installationId: 'foreign' })
    expect(sentence).toMatch(/under files\/ .* belong to another installation.*S3_PREFIX/)
    expect(server.objects.get(MARK)?.bytes.toString()).toBe('ours\n')
    const foreign = await openStore(server, { installationId: 'foreign', config: { prefix: 'foreign/' } })
    expect(await listNames(foreign)).toEqual([])
    expect(server.listBlobs()).toEqual([name])
  })

  test('is assigned to only one of two installations that claim it concurrently', async () => {
    const server = await S3Server.start()
    const starts = await Promise.allSettled(
      ['ours', 'foreign'].map((installationId) => openStore(server, { installationId })),
    )
    expect(starts.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  })

  test('can be claimed even if the server does not support conditional writes', async () => {
    const server = await S3Server.start()
    server.fail('PutObject', { status: 501, code: 'NotImplemented' }, 1)
    await openStore(server)
    expect(server.objects.get(MARK)?.bytes.toString()).toBe('ours\n')
  })

  test('can be adopted from another installation', async () => {
    const server = await S3Server.start()
    const { name } = await storeRandomBlob(await openStore(server, { installationId: 'foreign' }), 10)
    const former = await adoptPlaces({ ...server.config }, 'ours', AbortSignal.timeout(10_000))
    expect(former).toEqual({ files: 'foreign', artifacts: null })
    expect(await listNames(await openStore(server))).toEqual([name])
  })

  test('is not changed if it contains blobs but has no recorded owner', async () => {
    const server = await S3Server.start()
    server.objects.set(`files/${randomUUID()}`, { bytes: Buffer.from('whose?'), modifiedMs: 0 })
    expect(await startupError(server)).toMatch(
      /already contains files under files\/.*files\/installation with the content ours/,
    )
    server.objects.set(MARK, { bytes: Buffer.from('ours'), modifiedMs: 0 })
    expect(await listNames(await openStore(server))).toHaveLength(1)
  })
})

describe('unfinished uploads from an earlier process', () => {
  const begin = (server: S3Server, key: string, begunMs = Date.now()) =>
    server.uploads.set(randomUUID(), { key, begunMs, parts: new Map([[1, Buffer.alloc(MIB)]]) })

  test('are deleted at startup, but other uploads are not', async () => {
    const server = await S3Server.start()
    server.pageSize = 2
    for (let count = 0; count < 5; count++) begin(server, `files/${randomUUID()}`)
    for (const key of [`artifacts/${randomUUID()}`, 'files/notes.txt', 'backup']) begin(server, key)
    await openStore(server)
    const left = [...server.uploads.values()].map(({ key }) => key)
    expect(left.sort()).toEqual([expect.stringMatching(/^artifacts/), 'backup', 'files/notes.txt'])
  })

  test('are kept for an hour if other servers of the installation may run', async () => {
    const server = await S3Server.start()
    const [fresh, old] = [`files/${randomUUID()}`, `files/${randomUUID()}`]
    begin(server, fresh)
    begin(server, old, Date.now() - 3_601_000)
    await openStore(server, { isOnlyServer: false, clock: systemClock })
    expect([...server.uploads.values()].map(({ key }) => key)).toEqual([fresh])
  })

  test.each([
    ['cannot be listed for lack of permission', { status: 403, code: 'AccessDenied' }],
    ['cannot be listed on this S3 server', { status: 501, code: 'NotImplemented' }],
  ])('do not prevent startup if they %s', async (_what, fault) => {
    const server = await S3Server.start()
    begin(server, `files/${randomUUID()}`)
    server.fail('ListMultipartUploads', fault)
    const lines: string[] = []
    const log = pino({}, { write: (line: string) => void lines.push(line) })
    await openStore(server, { log })
    expect(lines.join()).toMatch(/failed to abort unfinished uploads/)
    expect(server.uploads.size).toBe(1)
  })
})
