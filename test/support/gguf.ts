/** Writes model files in GGUF version 3, the format of llama.cpp. */

export type GgufValue =
  | { readonly type: 'uint32' | 'float32'; readonly value: number }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'array'; readonly of: 'int32' | 'float32'; readonly value: readonly number[] }
  | { readonly type: 'array'; readonly of: 'string'; readonly value: readonly string[] }

/** A named matrix; a vector is a matrix with one row. */
export interface GgufTensor {
  readonly name: string
  readonly columns: number
  readonly rows: number
  readonly data: Float32Array
}

const typeNumbers = { uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 }
const F32 = 0
const alignment = 32

/** Returns the bytes of a GGUF file with 32-bit float tensors. */
export function renderGguf(
  metadata: Readonly<Record<string, GgufValue>>,
  tensors: readonly GgufTensor[],
): Buffer {
  const out = new GgufBuffer()
  out.bytes(Buffer.from('GGUF'))
  out.integer(3)
  out.long(tensors.length)
  out.long(Object.keys(metadata).length)
  for (const [key, entry] of Object.entries(metadata)) {
    out.text(key)
    out.integer(typeNumbers[entry.type])
    out.value(entry)
  }
  let offset = 0
  for (const { name, columns, rows, data } of tensors) {
    const shape = rows === 1 ? [columns] : [columns, rows]
    out.text(name)
    out.integer(shape.length)
    for (const size of shape) out.long(size)
    out.integer(F32)
    out.long(offset)
    offset += Math.ceil(data.byteLength / alignment) * alignment
  }
  for (const { data } of tensors) {
    out.pad()
    out.bytes(Buffer.from(data.buffer, data.byteOffset, data.byteLength))
  }
  return out.take()
}

/** A growing buffer of little-endian values. */
class GgufBuffer {
  private readonly parts: Buffer[] = []
  private sizeBytes = 0

  bytes(part: Buffer): void {
    this.parts.push(part)
    this.sizeBytes += part.length
  }

  integer(value: number): void {
    const part = Buffer.alloc(4)
    part.writeInt32LE(value)
    this.bytes(part)
  }

  long(value: number): void {
    const part = Buffer.alloc(8)
    part.writeBigUInt64LE(BigInt(value))
    this.bytes(part)
  }

  text(value: string): void {
    const part = Buffer.from(value)
    this.long(part.length)
    this.bytes(part)
  }

  value(entry: GgufValue): void {
    if (entry.type === 'array') this.array(entry)
    else if (entry.type === 'string') this.text(entry.value)
    else if (entry.type === 'bool') this.bytes(Buffer.from([Number(entry.value)]))
    else if (entry.type === 'float32') this.float(entry.value)
    else this.integer(entry.value)
  }

  pad(): void {
    this.bytes(Buffer.alloc((alignment - (this.sizeBytes % alignment)) % alignment))
  }

  take(): Buffer {
    return Buffer.concat(this.parts)
  }

  private float(value: number): void {
    const part = Buffer.alloc(4)
    part.writeFloatLE(value)
    this.bytes(part)
  }

  private array(entry: Extract<GgufValue, { type: 'array' }>): void {
    this.integer(typeNumbers[entry.of])
    this.long(entry.value.length)
    if (entry.of === 'string') for (const text of entry.value) this.text(text)
    else if (entry.of === 'int32') for (const number of entry.value) this.integer(number)
    else for (const number of entry.value) this.float(number)
  }
}
