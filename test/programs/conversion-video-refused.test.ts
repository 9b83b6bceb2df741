/** Tests that invalid videos are rejected and that ffmpeg does not follow references in them. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile, truncate, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { toConversionArguments, toProbeArguments } from '../../src/conversion/ffmpeg.ts'
import { createTestConverter, ffmpeg, h264, listBoxes, makeVideo } from '../support/conversion.ts'
import { makeFolder } from '../support/process.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const NOT_A_VIDEO = 'unconvertible: The file is not a video in a supported format.'
const DAMAGED = 'unconvertible: The video cannot be read: it is damaged or incomplete.'

/** Starts a TCP server that counts its connections. */
async function listen() {
  const seen = { connections: 0 }
  const server = createServer((socket) => {
    seen.connections += 1
    socket.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { seen, port: (server.address() as { port: number }).port }
}

/** Returns playlists in several formats that refer to the URL or path. */
function makeLists(place: string): [name: string, text: string][] {
  const hls = `#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n${place}\n#EXT-X-ENDLIST\n`
  const dash =
    '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT1S">' +
    `<Period><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1"><BaseURL>${place}</BaseURL>` +
    '</Representation></AdaptationSet></Period></MPD>'
  return [
    ['an HLS playlist', hls],
    ['an ffmpeg concat list', `ffconcat version 1.0\nfile '${place}'\n`],
    ['a DASH manifest', dash],
  ]
}

describe('a file with the extension .mp4', () => {
  test('is rejected if it is a playlist', async () => {
    const { convert } = await createTestConverter()
    for (const [, text] of makeLists('/etc/passwd')) {
      expect(await convert('video', text)).toEqual({ refused: NOT_A_VIDEO, left: [] })
    }
  })

  test('does not cause ffmpeg to access the network or another file if it is a playlist', async () => {
    const { seen, port } = await listen()
    const folder = await makeFolder()
    const [path, output] = [join(folder, 'list.mp4'), join(folder, 'out')]
    const secret = await makeVideo(join(folder, 'secret.mp4'), [...h264, '-an'])
    for (const place of [`http://127.0.0.1:${port}/a.ts`, `tcp://127.0.0.1:${port}`, secret]) {
      for (const [, text] of makeLists(place)) {
        await writeFile(path, text)
        const fit = { isVideoFit: true, audio: undefined }
        const matroska = { path, demuxer: 'matroska' } as const
        const runs: [string, string[]][] = [
          ['ffprobe', toProbeArguments({ path, demuxer: 'mov' })],
          ['ffmpeg', toConversionArguments(matroska, fit, { path: output, maxBytes: 1e6 })],
        ]
        for (const [program, words] of runs) expect(await runPlainly(program, words)).not.toBe(0)
      }
    }
    expect(seen.connections).toBe(0)
    // Checks that this ffmpeg would follow the playlist with other options.
    const [, text = ''] = makeLists(`http://127.0.0.1:${port}/a.ts`)[0] ?? []
    await writeFile(path, text)
    await runPlainly('ffmpeg', [
      '-v',
      'error',
      '-protocol_whitelist',
      'file,http,tcp',
      '-i',
      path,
      '-f',
      'null',
      '-',
    ])
    expect(seen.connections).toBeGreaterThan(0)
  })

  test('is converted even if its name looks like an ffmpeg URL', async () => {
    const { folder, convert } = await createTestConverter()
    const clip = await makeVideo(join(folder, 'clip.mp4'), [...h264, '-an'])
    const source = join(folder, 'concat:a|subfile,,start,0,end,9,,:x %d.mp4')
    await writeFile(source, await readFile(clip))
    expect((await convert('video', source)).converted?.result).toBe('converted')
  })
})

/** Runs a program without a sandbox; returns its exit code. */
function runPlainly(program: string, words: readonly string[]): Promise<number> {
  return new Promise((resolve) => {
    execFile(program, [...words], (error) => resolve(typeof error?.code === 'number' ? error.code : 0))
  })
}

describe('a video conversion', () => {
  const fail = (words: string) =>
    createTestConverter({ programs: { ffmpeg: `echo "${words}" >&2; exit 1`, ffprobe: true } })

  test('fails with storage_full when ffmpeg runs out of disk space', async () => {
    const { folder, convert } = await fail('av_interleaved_write_frame(): No space left on device')
    const source = await makeVideo(join(folder, 'clip.mp4'))
    await expect(convert('video', source)).rejects.toMatchObject({ reason: 'storage_full' })
  })

  test('reports the codecs when ffmpeg lacks an encoder', async () => {
    const { folder, convert } = await fail("Unknown encoder 'libx264'")
    const { refused } = await convert('video', await makeVideo(join(folder, 'clip.mp4')))
    expect(refused).toBe("unconvertible: This server's ffmpeg cannot encode H.264 with AAC.")
  })
})

describe('the video conversion rejects', () => {
  test('an empty file', async () => {
    const { convert } = await createTestConverter()
    expect(await convert('video', '')).toEqual({ refused: 'unconvertible: The file is empty.', left: [] })
  })

  test('text, a web page or a Matroska signature without content', async () => {
    const { convert } = await createTestConverter()
    for (const text of ['text', '<html></html>', '\x1aE\xdf\xa3'])
      expect(await convert('video', Buffer.from(text, 'latin1'))).toEqual({ refused: NOT_A_VIDEO, left: [] })
  })

  test('the first part of a video', async () => {
    const { folder, convert } = await createTestConverter()
    const whole = await readFile(await makeVideo(join(folder, 'clip.mp4')))
    expect(await convert('video', whole.subarray(0, 40))).toEqual({ refused: DAMAGED, left: [] })
    expect(await convert('video', whole.subarray(0, whole.length / 2))).toEqual({
      refused: DAMAGED,
      left: [],
    })
  })

  test('a video that is truncated after its index', async () => {
    const { folder, convert } = await createTestConverter()
    const long = 'testsrc2=size=320x240:rate=10:duration=8'
    const source = await makeVideo(
      join(folder, 'clip.mp4'),
      [...h264, '-an', '-movflags', '+faststart'],
      long,
    )
    expect(await listBoxes(source)).toContain('moov')
    await truncate(source, Math.floor((await readFile(source)).length / 3))
    const { refused, left } = await convert('video', source)
    expect(refused).toMatch(/^unconvertible: Only \d\.\d of the video's 8\.0 seconds can be read\.$/)
    expect(left).toEqual([])
  })

  test('audio with a cover image', async () => {
    const { folder, convert } = await createTestConverter()
    const [cover, source] = [join(folder, 'cover.png'), join(folder, 'song.mp4')]
    await ffmpeg('-f', 'lavfi', '-i', 'testsrc=size=64x64', '-frames:v', '1', cover)
    const tone = ['-f', 'lavfi', '-i', 'sine=duration=1']
    await ffmpeg(
      ...tone,
      '-i',
      cover,
      '-map',
      '0',
      '-map',
      '1',
      '-c:v',
      'png',
      '-disposition:v',
      'attached_pic',
      source,
    )
    const refused = 'unconvertible: The file contains no video.'
    expect(await convert('video', source)).toEqual({ refused, left: [] })
  })

  test('frames with too many pixels', async () => {
    const { folder, convert } = await createTestConverter()
    const words = ['-c:v', 'mjpeg', '-pix_fmt', 'yuvj420p', '-frames:v', '1', '-an']
    const source = await makeVideo(join(folder, 'wide.mov'), words, 'color=size=9000x6000:rate=1:duration=1')
    const refused = 'unconvertible: The video resolution is too high: 9000 x 6000.'
    expect(await convert('video', source)).toEqual({ refused, left: [] })
  })

  test('a video with invalid bytes after a valid start', async () => {
    const { folder, convert } = await createTestConverter()
    const source = await makeVideo(join(folder, 'clip.mp4'), [...h264, '-movflags', '+faststart'])
    await using file = await open(source, 'r+')
    await file.write(Buffer.alloc(600, 0xff), 0, 600, 100)
    const { refused, left } = await convert('video', source)
    expect(refused).toMatch(/^unconvertible: /)
    expect(left).toEqual([])
  })
})
