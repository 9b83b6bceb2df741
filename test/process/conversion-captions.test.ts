/** Tests that the conversion worker process converts captions to WebVTT. */
import { readFile } from 'node:fs/promises'
import { describe, expect, test, vi } from 'vitest'
import { createTestConverter } from '../support/conversion.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const srt = '1\n00:00:01,000 --> 00:00:02,500\nHello\n\n2\n00:00:03,000 --> 00:00:04,000\nthere\n'
const vtt = 'WEBVTT\n\n00:00:01.000 --> 00:00:02.500\nHello\n\n00:00:03.000 --> 00:00:04.000\nthere\n'

describe('a captions upload', () => {
  test('in SubRip format is converted to WebVTT', async () => {
    const { converted, left } = await (await createTestConverter()).convert('captions', srt)
    expect(converted).toMatchObject({ result: 'converted', file: { mediaType: 'text/vtt' } })
    expect(left).toEqual(['captions.vtt'])
    expect(await readFile(converted?.file.path ?? '', 'utf8')).toBe(vtt)
  })

  test('in WebVTT format is served unchanged', async () => {
    const { converted, left } = await (await createTestConverter()).convert('captions', vtt)
    expect(converted).toEqual({
      result: 'original',
      file: { path: expect.any(String), mediaType: 'text/vtt' },
    })
    expect(await readFile(converted?.file.path ?? '', 'utf8')).toBe(vtt)
    expect(left).toEqual([])
  })

  test('of more than 5 MiB is rejected', async () => {
    const { refused, left } = await (await createTestConverter()).convert(
      'captions',
      vtt.padEnd(5 * 1024 ** 2 + 1),
    )
    expect(refused).toBe('unconvertible: The captions are larger than 5 MiB.')
    expect(left).toEqual([])
  })
})
