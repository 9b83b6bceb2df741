/** Implements the scripted S3 server's bucket and its operations. */
import { createHash, randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { S3Operation } from './s3-operations.ts'
import { listXml, uploadsXml } from './s3-xml.ts'

interface StoredObject {
  readonly bytes: Buffer
  readonly modifiedMs: number
}

interface StoredUpload {
  readonly key: string
  readonly begunMs: number
  readonly parts: Map<number, Buffer>
}

export interface Call {
  readonly key: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

export interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer | string
}

export class S3Error extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string) {
    super(code)
    this.status = status
    this.code = code
  }
}

export class S3Contents {
  readonly objects = new Map<string, StoredObject>()
  readonly uploads = new Map<string, StoredUpload>()
  /** The maximum number of names on a list page. */
  pageSize = 1_000
  /** Returns the time in Unix milliseconds; tests can replace it. */
  now = () => Date.now()

  answer(operation: S3Operation, call: Call): Answer {
    switch (operation) {
      case 'HeadBucket':
        return { status: 200 }
      case 'GetObject':
      case 'HeadObject':
        return this.read(call)
      case 'PutObject':
        if (call.headers['if-none-match'] === '*' && this.objects.has(call.key))
          throw new S3Error(412, 'PreconditionFailed')
        this.objects.set(call.key, { bytes: call.body, modifiedMs: this.now() })
        return { status: 200, headers: { etag: '"put"' } }
      case 'DeleteObject':
        this.objects.delete(call.key)
        return { status: 204 }
      case 'ListObjectsV2':
        return this.list(call)
      case 'ListMultipartUploads':
        return this.listUploads(call)
      case 'CreateMultipartUpload':
        return this.createUpload(call)
      case 'UploadPart':
        return this.putPart(call)
      case 'CompleteMultipartUpload':
        return this.complete(call)
      case 'AbortMultipartUpload':
        this.getUpload(call)
        this.uploads.delete(call.query.get('uploadId') as string)
        return { status: 204 }
    }
  }

  private read({ key, headers }: Call): Answer {
    const object = this.objects.get(key)
    if (object === undefined) throw new S3Error(404, 'NoSuchKey')
    const { bytes } = object
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? []
    if (from === undefined) return { status: 200, body: bytes }
    const [start, end] = [Number(from), Math.min(Number(to), bytes.length - 1)]
    if (start >= bytes.length) throw new S3Error(416, 'InvalidRange')
    const contentRange = `bytes ${start}-${end}/${bytes.length}`
    return { status: 206, headers: { 'content-range': contentRange }, body: bytes.subarray(start, end + 1) }
  }

  private list({ query }: Call): Answer {
    const after = query.get('continuation-token') ?? ''
    const keys = [...this.objects.keys()].sort().filter((key) => key > after && isIn(key, query))
    const page = keys.slice(0, Math.min(this.pageSize, Number(query.get('max-keys'))))
    const entries = page.map((key) => ({ key, modifiedMs: this.objects.get(key)?.modifiedMs ?? 0 }))
    return { status: 200, body: listXml(entries, page.length < keys.length) }
  }

  private listUploads({ query }: Call): Answer {
    const after = query.get('upload-id-marker') ?? ''
    const found = [...this.uploads]
      .map(([uploadId, { key, begunMs }]) => ({ uploadId, key, begunMs }))
      .sort((one, other) => (one.uploadId < other.uploadId ? -1 : 1))
      .filter(({ uploadId, key }) => uploadId > after && isIn(key, query))
    const page = found.slice(0, this.pageSize)
    return { status: 200, body: uploadsXml(page, page.length < found.length) }
  }

  private createUpload({ key }: Call): Answer {
    const uploadId = randomUUID()
    this.uploads.set(uploadId, { key, begunMs: this.now(), parts: new Map() })
    const body = `<InitiateMultipartUploadResult><UploadId>${uploadId}</UploadId></InitiateMultipartUploadResult>`
    return { status: 200, body }
  }

  private putPart(call: Call): Answer {
    const number = Number(call.query.get('partNumber'))
    this.getUpload(call).parts.set(number, call.body)
    return { status: 200, headers: { etag: tagOf(call.body) } }
  }

  private complete(call: Call): Answer {
    const { parts, begunMs } = this.getUpload(call)
    const named = [...call.body.toString().matchAll(/<Part>.*?<\/Part>/gs)].map(([part]) => ({
      number: Number(/<PartNumber>(\d+)</.exec(part)?.[1]),
      tag: /<ETag>(.*?)</.exec(part)?.[1]?.replaceAll('&quot;', '"'),
    }))
    const pieces = named.map(({ number, tag }) => {
      const piece = parts.get(number)
      if (piece === undefined || tagOf(piece) !== tag) throw new S3Error(400, 'InvalidPart')
      return piece
    })
    if (named.some(({ number }, index) => number <= (named[index - 1]?.number ?? 0)))
      throw new S3Error(400, 'InvalidPartOrder')
    if (pieces.slice(0, -1).some((piece) => piece.length < 5 * 1024 ** 2))
      throw new S3Error(400, 'EntityTooSmall')
    this.objects.set(call.key, { bytes: Buffer.concat(pieces), modifiedMs: begunMs })
    this.uploads.delete(call.query.get('uploadId') as string)
    return {
      status: 200,
      body: '<CompleteMultipartUploadResult><ETag>"whole"</ETag></CompleteMultipartUploadResult>',
    }
  }

  private getUpload({ key, query }: Call): StoredUpload {
    const upload = this.uploads.get(query.get('uploadId') ?? '')
    if (upload?.key !== key) throw new S3Error(404, 'NoSuchUpload')
    return upload
  }
}

function isIn(key: string, query: URLSearchParams): boolean {
  return key.startsWith(query.get('prefix') ?? '')
}

function tagOf(bytes: Buffer): string {
  return `"${createHash('md5').update(bytes).digest('hex')}"`
}
