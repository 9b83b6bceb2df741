/** Opening a store in a bucket: whose place it is, what is cleared away there, and why a start is refused. */

import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { StartupError } from '../../../src/lib/errors.ts'
import { adoptPlaces } from '../../../src/storage/probe-s3.ts'
import { S3Server } from '../../support/s3-server.ts'
import {
  keepRandom,
  listNames,
  MIB,
  openStore,
  read,
  type StoreOptions,
  shortTimings,
} from '../../support/s3-store.ts'

const MARK = 'files/installation'

/** The sentence a start is refused with. */
async function refusal(server: S3Server, options?: StoreOptions): Promise<string> {
  const error = await openStore(server, options).catch((thrown) => thrown)
  expect(error).toBeInstanceOf(StartupError)
  return error.message
}

describe('a bucket that is not usable stops the start with a sentence', () => {
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
  ])('of %i %s', async (status, code, sentence) => {
    const server = await S3Server.start()
    server.fail('GetObject', { status, code })
    expect(await refusal(server)).toMatch(sentence)
  })

  test('of a name that is another', async () => {
    const server = await S3Server.start()
    expect(await refusal(server, { config: { bucket: 'another' } })).toMatch(
      /bucket another .* does not exist/,
    )
  })

  test('of an unknown key', async () => {
    const server = await S3Server.start()
    const credentials = { ...server.config.credentials, accessKeyId: 'AKIANOBODY' } as const
    const sentence = await refusal(server, {
      config: { credentials: { secretAccessKey: '', sessionToken: undefined, ...credentials } },
    })
    expect(sentence).toMatch(/rejects the credentials \(InvalidAccessKeyId\)/)
    expect(sentence).not.toContain('AKIA')
  })

  test('of a server that is not there, or does not answer', async () => {
    const server = await S3Server.start()
    server.fail('GetObject', 'hang')
    expect(await refusal(server, { timings: shortTimings })).toMatch(/is not usable \(TimeoutError/)
    server.stop()
    expect(await refusal(server)).toMatch(/is not usable \(ECONNREFUSED/)
  })

  test.each([
    'http://169.254.169.254',
    'http://[fe80::1]:9000',
    'http://[::ffff:169.254.1.1]',
    'http://[fd00:ec2::254]',
  ])('of an address where only credentials live: %s', async (endpoint) => {
    const server = await S3Server.start()
    expect(await refusal(server, { config: { endpoint } })).toMatch(/link-local or metadata address/)
  })
})

describe('a place in a bucket', () => {
  test('that is empty becomes the installation’s, and stays it', async () => {
    const server = await S3Server.start()
    const { name, bytes } = await keepRandom(await openStore(server), 10)
    expect(server.objects.get(MARK)?.bytes.toString()).toBe('ours\n')
    const again = await openStore(server)
    expect((await read(again, name)).equals(bytes)).toBe(true)
  })

  test('of another installation is left alone', async () => {
    const server = await S3Server.start()
    const { name } = await keepRandom(await openStore(server), 10)
    const sentence = await refusal(server, { installationId: 'theirs' })
    expect(sentence).toMatch(/under files\/ .* belong to another installation.*S3_PREFIX/)
    expect(server.objects.get(MARK)?.bytes.toString()).toBe('ours\n')
    const theirs = await openStore(server, { installationId: 'theirs', config: { prefix: 'theirs/' } })
    expect(await listNames(theirs)).toEqual([])
    expect(server.listBlobs()).toEqual([name])
  })

  test('that two installations take at the same time gets one of them', async () => {
    const server = await S3Server.start()
    const starts = await Promise.allSettled(
      ['ours', 'theirs'].map((installationId) => openStore(server, { installationId })),
    )
    expect(starts.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  })

  test('is taken where the server does not know conditional writes', async () => {
    const server = await S3Server.start()
    server.fail('PutObject', { status: 501, code: 'NotImplemented' }, 1)
    await openStore(server)
    expect(server.objects.get(MARK)?.bytes.toString()).toBe('ours\n')
  })

  test('of another installation can be adopted', async () => {
    const server = await S3Server.start()
    const { name } = await keepRandom(await openStore(server, { installationId: 'theirs' }), 10)
    const former = await adoptPlaces({ ...server.config }, 'ours', AbortSignal.timeout(10_000))
    expect(former).toEqual({ files: 'theirs', artifacts: null })
    expect(await listNames(await openStore(server))).toEqual([name])
  })

  test('that holds blobs of nobody known is left alone, until somebody says whose they are', async () => {
    const server = await S3Server.start()
    server.objects.set(`files/${randomUUID()}`, { bytes: Buffer.from('whose?'), modifiedMs: 0 })
    expect(await refusal(server)).toMatch(
      /already contains files under files\/.*files\/installation with the content ours/,
    )
    server.objects.set(MARK, { bytes: Buffer.from('ours'), modifiedMs: 0 })
    expect(await listNames(await openStore(server))).toHaveLength(1)
  })
})

describe('what an earlier process left unfinished', () => {
  const begin = (server: S3Server, key: string) =>
    server.uploads.set(randomUUID(), { key, begunMs: Date.now(), parts: new Map([[1, Buffer.alloc(MIB)]]) })

  test('is thrown away at the start, and nothing beside it', async () => {
    const server = await S3Server.start()
    server.pageSize = 2
    for (let count = 0; count < 5; count++) begin(server, `files/${randomUUID()}`)
    for (const key of [`artifacts/${randomUUID()}`, 'files/notes.txt', 'backup']) begin(server, key)
    await openStore(server)
    const left = [...server.uploads.values()].map(({ key }) => key)
    expect(left.sort()).toEqual([expect.stringMatching(/^artifacts/), 'backup', 'files/notes.txt'])
  })

  test.each([
    ['may not be listed', { status: 403, code: 'AccessDenied' }],
    ['cannot be listed there', { status: 501, code: 'NotImplemented' }],
  ])('and %s is no reason not to start', async (_what, fault) => {
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
