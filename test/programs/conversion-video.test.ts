/** Tests that videos are remuxed or re-encoded as H.264 and AAC in an MP4 with the index at the front. */
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  createTestConverter,
  ffmpeg,
  h264,
  listBoxes,
  listFrames,
  makeVideo,
  probe,
} from '../support/conversion.ts'
import { makeFolder } from '../support/process.ts'

const codecs = async (path: string) =>
  (await probe(path)).streams.map(({ codec_name }: { codec_name: string }) => codec_name)

describe('a video', () => {
  test('with supported codecs is remuxed to an MP4 with identical frames and the index at the front', async () => {
    const { folder, convert } = await createTestConverter()
    const source = await makeVideo(join(folder, 'end.mp4'))
    expect((await listBoxes(source)).at(-1)).toBe('moov')
    const before = await readFile(source)
    const { converted, left } = await convert('video', source)
    expect(left.toSorted()).toEqual(['converted.mp4', 'poster.jpg'])
    const file = converted?.file.path ?? ''
    expect(converted).toMatchObject({ result: 'converted', file: { mediaType: 'video/mp4' } })
    expect(converted?.reason).toBeUndefined()
    const boxes = await listBoxes(file)
    expect(boxes.indexOf('moov')).toBeLessThan(boxes.indexOf('mdat'))
    expect(await codecs(file)).toEqual(['h264', 'aac'])
    // Encoding is lossy, so identical frames show that the video was not re-encoded.
    expect(await listFrames(file)).toEqual(await listFrames(source))
    expect(await readFile(source)).toEqual(before)
  })

  test.each([
    ['avi', ['-c:v', 'mpeg4', '-c:a', 'mp3']],
    ['ts', h264],
    ['flv', h264],
    ['wmv', ['-c:v', 'wmv2', '-c:a', 'wmav2']],
    ['ogv', ['-c:v', 'libtheora', '-c:a', 'libvorbis']],
    ['mpg', ['-r', '25', '-c:v', 'mpeg2video', '-c:a', 'mp2']],
  ])('is converted from a .%s file', async (extension, encoders) => {
    const { folder, convert } = await createTestConverter()
    const { converted, refused } = await convert(
      'video',
      await makeVideo(join(folder, `v.${extension}`), encoders),
    )
    expect(refused).toBeUndefined()
    expect(converted).toMatchObject({ result: 'converted', file: { mediaType: 'video/mp4' } })
    expect(await codecs(converted?.file.path ?? '')).toEqual(['h264', 'aac'])
  })

  test.each(['mov', 'mkv'])('with supported codecs is remuxed from a .%s file', async (extension) => {
    const { folder, convert } = await createTestConverter()
    const source = await makeVideo(join(folder, `clip.${extension}`))
    const file = (await convert('video', source)).converted?.file.path ?? ''
    expect(await listFrames(file)).toEqual(await listFrames(source))
  })

  test('retains its frames if only the audio is re-encoded', async () => {
    const { folder, convert } = await createTestConverter()
    const source = await makeVideo(join(folder, 'clip.mkv'), [...h264.slice(0, -1), 'flac'])
    const file = (await convert('video', source)).converted?.file.path ?? ''
    expect(await codecs(file)).toEqual(['h264', 'aac'])
    expect(await listFrames(file)).toEqual(await listFrames(source))
  })

  test('is converted even if it has no audio', async () => {
    const { folder, convert } = await createTestConverter()
    const source = await makeVideo(join(folder, 'clip.mp4'), [...h264, '-an'])
    expect(await codecs((await convert('video', source)).converted?.file.path ?? '')).toEqual(['h264'])
  })

  test('loses its subtitles, attachments, chapters and metadata', async () => {
    const { folder, convert } = await createTestConverter()
    const [subtitles, chapters] = [join(folder, 'a.srt'), join(folder, 'a.txt')]
    await writeFile(subtitles, '1\n00:00:00,000 --> 00:00:01,000\nHi\n')
    await writeFile(chapters, ';FFMETADATA1\n[CHAPTER]\nTIMEBASE=1/1\nSTART=0\nEND=1\ntitle=Home\n')
    const clip = await makeVideo(join(folder, 'clip.mp4'))
    const source = join(folder, 'all.mkv')
    const tags = ['-metadata', 'location=+48.1+11.5/', '-metadata:s:v', 'title=Kitchen']
    const maps = ['-map', '0', '-map', '1', '-map_chapters', '2', '-attach', subtitles]
    const inputs = ['-i', clip, '-i', subtitles, '-i', chapters]
    await ffmpeg(...inputs, ...maps, '-metadata:s:t', 'mimetype=text/plain', ...tags, '-c', 'copy', source)
    expect(await codecs(source)).toHaveLength(4)
    const found = await probe((await convert('video', source)).converted?.file.path ?? '')
    expect(found.streams.map((stream: { codec_name: string }) => stream.codec_name)).toEqual(['h264', 'aac'])
    expect(found.chapters).toEqual([])
    expect(JSON.stringify(found)).not.toMatch(/48\.1|Kitchen|Home/)
  })
})

describe('a video with unsupported codecs', () => {
  test.each([
    ['VP9 in a WebM', 'clip.webm', ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-c:a', 'libopus']],
    ['MPEG-4 in a MOV', 'clip.mov', ['-c:v', 'mpeg4', '-c:a', 'pcm_s16le']],
    [
      'H.264 with more than 8 bits',
      'clip.mp4',
      ['-c:v', 'libx264', '-pix_fmt', 'yuv420p10le', '-c:a', 'aac'],
    ],
    ['H.264 in 4:4:4 color', 'clip.mp4', ['-c:v', 'libx264', '-pix_fmt', 'yuv444p', '-c:a', 'aac']],
  ])('is re-encoded: %s', async (_what, name, words) => {
    const { folder, convert } = await createTestConverter()
    const source = await makeVideo(join(folder, name), words)
    const shares: number[] = []
    const { converted } = await convert('video', source, { onProgress: (share) => shares.push(share) })
    const found = await probe(converted?.file.path ?? '')
    expect(found.streams).toMatchObject([
      { codec_name: 'h264', pix_fmt: 'yuv420p', width: 320, height: 240 },
      { codec_name: 'aac' },
    ])
    expect(Number(found.format.duration)).toBeCloseTo(2, 0)
    const boxes = await listBoxes(converted?.file.path ?? '')
    expect(boxes.indexOf('moov')).toBeLessThan(boxes.indexOf('mdat'))
    expect(shares.length).toBeGreaterThan(0)
    expect(shares).toEqual(shares.toSorted((one, other) => one - other))
    expect(shares.every((share) => share > 0 && share <= 1)).toBe(true)
  })

  test('is scaled down to at most 1920 pixels per side with even dimensions', async () => {
    const { folder, convert } = await createTestConverter()
    const source = await makeVideo(
      join(folder, 'tall.mov'),
      ['-c:v', 'mjpeg', '-frames:v', '5', '-an'],
      'testsrc=size=1201x2403:rate=5:duration=1',
    )
    const { streams } = await probe((await convert('video', source)).converted?.file.path ?? '')
    expect(streams).toMatchObject([{ codec_name: 'h264', width: 960, height: 1920 }])
  })

  test('reports progress even if its duration is unknown, as in browser recordings', async () => {
    const { folder, convert } = await createTestConverter()
    const clip = await makeVideo(join(folder, 'clip.webm'), [
      '-c:v',
      'libvpx',
      '-deadline',
      'realtime',
      '-an',
    ])
    const source = join(folder, 'live.webm')
    await ffmpeg('-i', clip, '-c', 'copy', '-live', '1', '-f', 'webm', source)
    expect((await probe(source)).format.duration).toBeUndefined()
    const shares: number[] = []
    await convert('video', source, { onProgress: (share) => shares.push(share) })
    expect(shares.at(-1)).toBeGreaterThan(0.5)
  })
})

describe("a video's poster", () => {
  test("is a JPEG with the video's dimensions", async () => {
    const { folder, convert } = await createTestConverter()
    const source = await makeVideo(join(folder, 'clip.mp4'))
    const { converted } = await convert('video', source)
    expect(converted?.poster?.mediaType).toBe('image/jpeg')
    const { streams } = await probe(converted?.poster?.path ?? '')
    expect(streams).toMatchObject([{ codec_name: 'mjpeg', width: 320, height: 240 }])
    expect((await stat(converted?.poster?.path ?? '')).size).toBeGreaterThan(1000)
  })

  test('is omitted if it cannot be created', async () => {
    const { folder } = await createTestConverter()
    const source = await makeVideo(join(folder, 'clip.mp4'))
    const real = (await createTestConverter()).converter.programs
    const script = `case "$*" in *mjpeg*) exit 1;; esac; exec ${real.ffmpeg} "$@"`
    const { convert } = await createTestConverter({ programs: { ffmpeg: script, ffprobe: true } })
    const { converted, left } = await convert('video', source)
    expect(converted?.result).toBe('converted')
    expect(converted?.poster).toBeUndefined()
    expect(left).toEqual(['converted.mp4'])
  })
})

test('a video that cannot be remuxed is re-encoded', async () => {
  const real = (await createTestConverter()).converter.programs
  const script = `case "$*" in *"-c:v copy"*) exit 1;; esac; exec ${real.ffmpeg} "$@"`
  const { folder, convert } = await createTestConverter({ programs: { ffmpeg: script, ffprobe: true } })
  const source = await makeVideo(join(folder, 'clip.mp4'))
  const { converted } = await convert('video', source)
  expect(converted?.result).toBe('converted')
  expect(await listFrames(converted?.file.path ?? '')).not.toEqual(await listFrames(source))
})

test('a video is served unchanged when ffmpeg is missing', async () => {
  const { convert } = await createTestConverter({ programs: { prlimit: true } })
  const source = await makeVideo(join(await makeFolder(), 'clip.mp4'))
  const { converted, left } = await convert('video', source)
  expect(converted).toEqual({
    result: 'original',
    file: { path: source, mediaType: 'application/octet-stream' },
    reason: 'This server has no ffmpeg or ffprobe, so it serves videos as uploaded.',
  })
  expect(left).toEqual([])
})
