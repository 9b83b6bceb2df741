/** A long text as it is, in pieces: while it grows, only the last piece is laid out again. */
import { memo, useMemo } from 'react'

const PIECE_LENGTH = 4000

export function PlainText({ text }: { text: string }) {
  const pieces = useMemo(() => cutPlain(text), [text])
  return (
    <div className="plain" dir="auto">
      {pieces.map((piece, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: pieces are only ever added at the end
        <Piece key={index} text={piece} />
      ))}
    </div>
  )
}

const Piece = memo(function Piece({ text }: { text: string }) {
  return <div className="piece">{text}</div>
})

/** Pieces of a text, cut after white space where there is some; joined they are the text again. */
export function cutPlain(text: string): readonly string[] {
  const pieces: string[] = []
  let from = 0
  while (text.length - from > PIECE_LENGTH) {
    const space = text.slice(from, from + PIECE_LENGTH).search(/\s\S*$/)
    const length = space > 0 ? space + 1 : wholeLength(text, from + PIECE_LENGTH) - from
    pieces.push(text.slice(from, from + length))
    from += length
  }
  pieces.push(text.slice(from))
  return pieces
}

/** Not between the halves of one character. */
function wholeLength(text: string, end: number): number {
  const code = text.charCodeAt(end - 1)
  return code >= 0xd800 && code < 0xdc00 ? end - 1 : end
}
