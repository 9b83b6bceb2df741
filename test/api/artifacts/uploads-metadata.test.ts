/** Tests which upload metadata is accepted, and that errors name the invalid key. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseMetadata } from '../../../src/artifacts/metadata.ts'
import { ServiceError } from '../../../src/lib/errors.ts'
import { startApp } from '../../support/app.ts'
import { postUpload, readStatus, toMetadata } from '../../support/uploads.ts'

const id = '11111111-2222-4333-8444-555555555555'
const other = '99999999-2222-4333-8444-555555555555'
const digest = 'AB'.repeat(32)
const base64 = (text: string | Buffer) => Buffer.from(text).toString('base64')

/** Returns the error for an Upload-Metadata header, and throws if the header is valid. */
function errorOf(header: string): { message: string; param: string | undefined } {
  try {
    parseMetadata(header)
  } catch (error) {
    if (error instanceof ServiceError && error.reason === 'invalid_value')
      return { message: error.message, param: error.details.param }
    throw error
  }
  throw new Error(`accepted: ${header}`)
}

describe('upload metadata', () => {
  test('is parsed into fields, with the name trimmed and the id and checksum in lower case', () => {
    const sent = {
      artifactId: id.toUpperCase(),
      filename: '../Ferien\u202e.mp4',
      filetype: 'video/mp4; codecs="avc1"',
      kind: 'captions',
      relatedTo: other,
      name: `  ${'😀'.repeat(512)}  `,
      checksum: `sha256:${digest}`,
    }
    expect(parseMetadata(toMetadata(sent))).toEqual({
      ...sent,
      artifactId: id,
      name: '😀'.repeat(512),
      checksum: digest.toLowerCase(),
    })
  })

  test('requires only the filename', () => {
    const nothing = {
      artifactId: undefined,
      filetype: undefined,
      kind: undefined,
      relatedTo: undefined,
      name: undefined,
      checksum: undefined,
    }
    expect(parseMetadata(toMetadata({ filename: 'a' }))).toEqual({ ...nothing, filename: 'a' })
    // Browsers send an empty value for an unknown type, and Uppy sends additional keys.
    const header = `filename ${base64('a')}, filetype,name ,relativePath ${base64('null')},is_confidential`
    expect(parseMetadata(header)).toEqual({ ...nothing, filename: 'a' })
  })

  const rejected: [key: string, header: string][] = [
    ['filename', ''],
    ['filename', 'filename'],
    ['filename', toMetadata({ filename: '  ' })],
    ['filename', toMetadata({ name: 'no file' })],
    ['filename', toMetadata({ filename: 'a\r\nSet-Cookie: b' })],
    ['filename', toMetadata({ filename: 'a\0' })],
    ['filename', toMetadata({ filename: 'a'.repeat(513) })],
    ['filename', `filename ${base64(Buffer.from([0xff, 0xfe]))}`],
    ['filename', `filename ${base64('a')},filename ${base64('b')}`],
    ['filename', 'filename YQ'],
    ['filename', 'filename Y_==YQ=='],
    ['filename', 'filename a.mp4!'],
    ['artifactId', toMetadata({ filename: 'a', artifactId: 'one' })],
    ['artifactId', toMetadata({ filename: 'a', artifactId: `${id}0` })],
    ['artifactId', `filename ${base64('a')},artifactId`],
    ['relatedTo', toMetadata({ filename: 'a', relatedTo: '../x' })],
    ['relatedTo', toMetadata({ filename: 'a', artifactId: id, relatedTo: id.toUpperCase() })],
    ['kind', toMetadata({ filename: 'a', kind: 'audio' })],
    ['kind', toMetadata({ filename: 'a', kind: 'Video' })],
    ['name', toMetadata({ filename: 'a', name: 'x'.repeat(513) })],
    ['name', toMetadata({ filename: 'a', name: 'line\nline' })],
    ['filetype', toMetadata({ filename: 'a', filetype: 'a\tb' })],
    ['checksum', toMetadata({ filename: 'a', checksum: digest })],
    ['checksum', toMetadata({ filename: 'a', checksum: `sha1:${digest}` })],
    ['checksum', toMetadata({ filename: 'a', checksum: `sha256:${digest}00` })],
    ['Upload-Metadata', 'filename  YQ=='],
    ['Upload-Metadata', 'filename YQ== more'],
    ['Upload-Metadata', `filename ${base64('a')},,`],
    ['Upload-Metadata', `schlüssel ${base64('a')}`],
    ['Upload-Metadata', `filename ${base64('a'.repeat(8_000))}`],
  ]
  test.each(rejected)('is rejected with an error that names %s: %.60s', (key, header) => {
    const { message, param } = errorOf(header)
    expect(param).toBe(key)
    expect(message).toMatch(new RegExp(`^${key}: \\w`))
  })

  test('is parsed or rejected quickly for arbitrary input', () => {
    const piece = fc.oneof(
      fc.string(),
      fc.constantFrom('filename', 'name', 'artifactId', ' ', ',', 'YQ==', '='),
      fc.string().map(base64),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        try {
          parseMetadata(pieces.join(''))
        } catch (error) {
          expect(error).toBeInstanceOf(ServiceError)
        }
      }),
      { numRuns: 2_000 },
    )
    // A naive regular expression for media types would backtrack for hours on this value.
    parseMetadata(toMetadata({ filename: 'a', filetype: `text/plain; a="${'.'.repeat(400)}` }))
  })
})

describe('an upload with metadata', () => {
  test('is not created if a field is invalid, and the error names that field', async () => {
    const app = await startApp()
    const answer = await postUpload(app, { metadata: { kind: 'audio', artifactId: id } })
    expect(answer.status).toBe(400)
    const message = 'kind: must be one of video, project, captions, thumbnail'
    expect(answer.body).toEqual({ ok: false, error: message })
    expect(await readStatus(app, id)).toEqual({ artifactId: id, state: 'unknown' })
  })

  test('is stored as a video if the metadata does not specify a kind', async () => {
    const app = await startApp()
    await postUpload(app, { metadata: { artifactId: id } })
    expect(await readStatus(app, id)).toMatchObject({ kind: 'video' })
  })
})
