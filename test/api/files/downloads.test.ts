/** Tests how files are downloaded in full, in ranges and conditionally. */
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { toSafeName } from '../../../src/http/download.ts'
import { choosePortion } from '../../../src/http/ranges.ts'
import { startApp } from '../../support/app.ts'
import { download, filePart, purpose, upload } from '../../support/files.ts'
import { RawConnection, toRequest } from '../../support/raw-connection.ts'

const bytes = Buffer.from(Array.from({ length: 1000 }, (_, index) => (index * 7) % 256))
const tag = '"file-1"'

describe('choosePortion for a 1000-byte file', () => {
  test.each([
    ['bytes=0-0', 0, 0],
    ['bytes=0-', 0, 999],
    ['bytes=10-19', 10, 19],
    ['bytes=999-', 999, 999],
    ['bytes=999-999', 999, 999],
    ['bytes=990-5000', 990, 999],
    ['bytes=0-99999999999999999999999', 0, 999],
    ['bytes=-1', 999, 999],
    ['bytes=-1000', 0, 999],
    ['bytes=-5000', 0, 999],
    ['BYTES=1-2', 1, 2],
    ['bytes= 1-2 ', 1, 2],
  ])('reads %s as bytes %i to %i', async (range, start, end) => {
    const portion = choosePortion('GET', { range }, { sizeBytes: 1000, entityTag: tag })
    expect(portion).toEqual({ status: 206, start, end })
  })

  test.each(['bytes=1000-', 'bytes=1000-1001', 'bytes=5000-', 'bytes=-0'])(
    'rejects %s as out of range',
    (range) => {
      expect(() => choosePortion('GET', { range }, { sizeBytes: 1000, entityTag: tag })).toThrow('1000 bytes')
    },
  )

  test.each([
    'bytes=',
    'bytes=-',
    'bytes=5',
    'bytes=a-b',
    'bytes=20-10',
    'bytes=0-1,5-6',
    'bytes=0x1-2',
    'bytes=+1-2',
    'bytes=1.0-2',
    'items=0-1',
    '0-1',
    '',
  ])('ignores the malformed range %j', (range) => {
    expect(choosePortion('GET', { range }, { sizeBytes: 1000, entityTag: tag })).toEqual({ status: 200 })
  })
})

describe('a conditional download', () => {
  const whole = { status: 200 }
  const part = { status: 206, start: 0, end: 1 }
  test.each([
    ['sends the range if If-Range matches', 'GET', { range: 'bytes=0-1', 'if-range': tag }, part],
    [
      'sends the whole file if If-Range does not match',
      'GET',
      { range: 'bytes=0-1', 'if-range': '"x"' },
      whole,
    ],
    [
      'sends the whole file if the tag in If-Range is weak',
      'GET',
      { range: 'bytes=0-1', 'if-range': `W/${tag}` },
      whole,
    ],
    [
      'sends the whole file if If-Range is a date',
      'GET',
      { range: 'bytes=0-1', 'if-range': 'Sat, 21 Nov 2026 15:00:00 GMT' },
      whole,
    ],
    [
      'ignores an unsatisfiable range if If-Range does not match',
      'GET',
      { range: 'bytes=2000-', 'if-range': '"x"' },
      whole,
    ],
    ['returns 304 if If-None-Match matches', 'GET', { 'if-none-match': tag }, { status: 304 }],
    [
      'returns 304 if a weak tag in If-None-Match matches',
      'GET',
      { 'if-none-match': `W/${tag}` },
      { status: 304 },
    ],
    [
      'returns 304 if a tag in an If-None-Match list matches',
      'GET',
      { 'if-none-match': `"a", W/"b" ,${tag}` },
      { status: 304 },
    ],
    ['returns 304 for If-None-Match: *', 'GET', { 'if-none-match': '*' }, { status: 304 }],
    ['sends the whole file if If-None-Match does not match', 'GET', { 'if-none-match': '"file-10"' }, whole],
    [
      'evaluates If-None-Match before Range',
      'GET',
      { 'if-none-match': tag, range: 'bytes=2000-' },
      { status: 304 },
    ],
    ['returns 304 to HEAD if If-None-Match matches', 'HEAD', { 'if-none-match': tag }, { status: 304 }],
    ['ignores Range on HEAD', 'HEAD', { range: 'bytes=0-1' }, whole],
  ])('%s', (_what, method, headers, expected) => {
    expect(choosePortion(method, headers, { sizeBytes: 1000, entityTag: tag })).toEqual(expected)
  })
})

describe('choosePortion for an empty file', () => {
  test.each(['bytes=0-', 'bytes=-1', 'bytes=0-0'])('rejects the range %s', (range) => {
    expect(() => choosePortion('GET', { range }, { sizeBytes: 0, entityTag: tag })).toThrow('0 bytes')
  })
})

describe('a file download', () => {
  test('returns the bytes as an attachment that a browser does not execute', async () => {
    const app = await startApp()
    const { body: file } = await upload(app, [filePart(bytes, 'Bericht é.bin'), purpose])
    const answer = await download(app, file.id)
    expect(answer.status).toBe(200)
    expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).toBe(true)
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-length': '1000',
      'content-disposition': `attachment; filename="Bericht ?.bin"; filename*=UTF-8''Bericht%20%C3%A9.bin`,
      'content-security-policy': "default-src 'none'; sandbox; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'cache-control': 'private, no-cache',
      'accept-ranges': 'bytes',
      etag: `"${file.id}"`,
      'x-ratelimit-limit': '600',
      'x-request-id': expect.any(String),
      'openai-processing-ms': expect.any(String),
    })
  })

  test('returns the requested range with Content-Range', async () => {
    const app = await startApp()
    const { body: file } = await upload(app, [filePart(bytes), purpose])
    const answer = await download(app, file.id, { headers: { Range: 'bytes=100-149' } })
    expect(answer.status).toBe(206)
    expect(answer.headers.get('content-range')).toBe('bytes 100-149/1000')
    expect(answer.headers.get('content-length')).toBe('50')
    expect(Buffer.from(await answer.arrayBuffer()).equals(bytes.subarray(100, 150))).toBe(true)
  })

  test('returns consecutive ranges that together equal the whole file', async () => {
    const app = await startApp()
    const large = Buffer.alloc(1_000_000, bytes)
    const { body: file } = await upload(app, [filePart(large), purpose])
    const hash = createHash('sha256')
    for (let start = 0; start < large.length; start += 300_000) {
      const headers = { Range: `bytes=${start}-${start + 299_999}` }
      const answer = await download(app, file.id, { headers })
      expect(answer.status).toBe(206)
      hash.update(Buffer.from(await answer.arrayBuffer()))
    }
    expect(hash.digest('hex')).toBe(createHash('sha256').update(large).digest('hex'))
  })

  test('returns 416 with the file size for a range past the end', async () => {
    const app = await startApp()
    const { body: file } = await upload(app, [filePart(bytes), purpose])
    const answer = await download(app, file.id, { headers: { Range: 'bytes=1000-' } })
    expect(answer.status).toBe(416)
    expect(answer.headers.get('content-range')).toBe('bytes */1000')
    expect((await answer.json()).error).toMatchObject({
      type: 'invalid_request_error',
      code: 'range_not_satisfiable',
    })
  })

  test('returns 304 without a body if the client already has the file', async () => {
    const app = await startApp()
    const { body: file } = await upload(app, [filePart(bytes), purpose])
    const answer = await download(app, file.id, { headers: { 'If-None-Match': `"${file.id}"` } })
    expect([answer.status, await answer.text()]).toEqual([304, ''])
    expect(answer.headers.get('etag')).toBe(`"${file.id}"`)
    expect(answer.headers.get('cache-control')).toBe('private, no-cache')
  })

  test('returns the same headers for HEAD as for GET', async () => {
    const app = await startApp()
    const { body: file } = await upload(app, [filePart(bytes), purpose])
    const head = await download(app, file.id, { method: 'HEAD' })
    const get = await download(app, file.id)
    const names = ['content-type', 'content-length', 'content-disposition', 'etag', 'accept-ranges']
    const pick = (answer: Response) => [answer.status, ...names.map((name) => answer.headers.get(name))]
    expect(pick(head)).toEqual(pick(get))
    expect(await head.text()).toBe('')
  })

  test('does not prevent later downloads if the client aborts it', async () => {
    const app = await startApp()
    const { body: file } = await upload(app, [filePart(Buffer.alloc(20_000_000, bytes)), purpose])
    const connection = await RawConnection.open(app)
    connection.send(
      toRequest(`GET /v1/files/${file.id}/content`, ['Host: x', `Authorization: Bearer ${app.key}`]),
    )
    await connection.receives(/^HTTP\/1\.1 200 /)
    connection.reset()
    const answer = await download(app, file.id, { headers: { Range: 'bytes=-1' } })
    expect(answer.status).toBe(206)
  })

  test('completes even if its file is deleted in the meantime', async () => {
    const app = await startApp()
    const large = Buffer.alloc(20_000_000, bytes)
    const { body: file } = await upload(app, [filePart(large), purpose])
    const response = await fetch(`${app.url}/v1/files/${file.id}/content`, {
      headers: { Authorization: `Bearer ${app.key}` },
    })
    expect((await app.call('DELETE', `/v1/files/${file.id}`)).status).toBe(200)
    expect(Buffer.from(await response.arrayBuffer()).equals(large)).toBe(true)
    expect((await download(app, file.id)).status).toBe(404)
  })

  test('can be read by a page from another origin that sends the key', async () => {
    const app = await startApp()
    const { body: file } = await upload(app)
    const answer = await download(app, file.id, { headers: { Origin: 'https://example.org' } })
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expect(answer.headers.get('access-control-expose-headers')).toMatch(/ETag, Content-Range/)
  })
})

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const mp4 = Buffer.from('\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41', 'latin1')

describe('a browser', () => {
  test.each([
    ['a PNG', png, 'image/png'],
    ['a JPEG', Buffer.from('ffd8ffe000104a46494600', 'hex'), 'image/jpeg'],
    ['a WebP', Buffer.from('RIFF\x10\0\0\0WEBPVP8 ', 'latin1'), 'image/webp'],
    ['an MP4', mp4, 'video/mp4'],
    ['a WebM', Buffer.from('1a45dfa3934282847765626d42878104', 'hex'), 'video/webm'],
    ['WebVTT', Buffer.from('WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n'), 'text/vtt'],
  ])('may display %s, regardless of its file name', async (_what, content, type) => {
    const app = await startApp()
    const { body: file } = await upload(app, [filePart(content, 'x.exe'), purpose])
    const answer = await download(app, file.id)
    expect(answer.headers.get('content-type')).toBe(type)
    expect(answer.headers.get('content-disposition')).toBe('inline; filename=x.exe')
    expect(answer.headers.get('content-security-policy')).toContain('sandbox')
  })

  test.each([
    ['a page', '<!doctype html><script>alert(1)</script>'],
    ['SVG', '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'],
    ['a PDF', '%PDF-1.7\n'],
    ['a GIF', 'GIF89a\x01\0\x01\0'],
    ['a script', 'alert(1)'],
    ['text', 'Hello'],
  ])('can only save %s, regardless of its file name and declared type', async (_what, content) => {
    const app = await startApp()
    const part = {
      disposition: 'name="file"; filename="x.png"',
      headers: ['Content-Type: image/png'],
      body: Buffer.from(content, 'latin1'),
    }
    const { body: file } = await upload(app, [part, purpose])
    const answer = await download(app, file.id)
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename=x.png')
    expect(answer.headers.get('content-type')).not.toMatch(/png|text|html|svg/)
  })
})

/** Matches a Content-Disposition header (RFC 6266, section 4.1). */
const parameter =
  /^attachment; filename=(?:(?<token>[\w.!#$%&'*+^`|~-]+)|"(?<quoted>(?:[^"\\]|\\.)*)")(?:; filename\*=UTF-8''(?<extended>[\w.%!#$&+^`|~-]+))?$/

describe("a downloaded file's name", () => {
  test.each([
    ['plain.txt', 'plain.txt'],
    ['Übersicht 報告書 📄.pdf', 'Übersicht 報告書 📄.pdf'],
    ['../../etc/passwd', 'passwd'],
    ['..\\..\\boot.ini', 'boot.ini'],
    ['a/..', 'file'],
    ['..', 'file'],
    ['', 'file'],
    [' . ', 'file'],
    ['a\r\nSet-Cookie: b', 'aSet-Cookie: b'],
    ['a\0b\u007F\u0085.txt', 'ab.txt'],
    ['invoice\u202Etxt.exe', 'invoicetxt.exe'],
    ['\u2066a\u2069\u200Fb\u061C', 'ab'],
    ['a\uD800b', 'a\uFFFDb'],
    ['a\u2028b', 'ab'],
    ['/\u202E..', 'file'],
    ['x/\u202E', 'file'],
  ])('is sanitized: %j becomes %j', (name, expected) => {
    expect(toSafeName(name)).toBe(expected)
  })

  test.each([
    ['a"b\\"; filename=x.txt'],
    ['a%0D%0AX-Evil: 1.txt'],
    ['100%25.txt'],
    ["it's; filename*=UTF-8''x.txt"],
  ])('is sent as a single header parameter: %s', async (sent) => {
    const app = await startApp()
    const { body: file } = await upload(app, [filePart('x', sent.replaceAll('"', '%22')), purpose])
    const answer = await download(app, file.id)
    const { groups = {} } = parameter.exec(answer.headers.get('content-disposition') ?? '') ?? {}
    const { token, quoted = '', extended } = groups
    const plain = token ?? quoted.replaceAll(/\\(.)/g, '$1')
    const name = extended === undefined ? plain : decodeURIComponent(extended)
    expect(name).toBe(toSafeName(file.filename))
    expect(answer.headers.get('x-evil')).toBeNull()
  })
})
