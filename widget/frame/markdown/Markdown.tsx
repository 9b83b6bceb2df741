/** A text of the model, as Markdown: parsed block by block, without HTML, pictures or foreign requests. */
import type { Root } from 'mdast'
import { Component, memo, type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import ReactMarkdown from 'react-markdown'
import { components } from './components.tsx'
import type { MarkdownParser } from './parser.ts'
import { splitBlocks, withDefinitions } from './split-blocks.ts'

const LATE_MS = 250

export function Markdown({ text, parser }: { text: string; parser: MarkdownParser }) {
  const blocks = useMemo(() => withDefinitions(splitBlocks(text)), [text])
  return blocks.map((block, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: blocks are only ever added at the end
    <Block key={index} text={block} parser={parser} />
  ))
}

/** What is shown of a block: `tree` is of an earlier `text` while a newer one is being parsed. */
interface Parsed {
  readonly text: string
  readonly tree: Root | undefined
}

const Block = memo(function Block({ text, parser }: { text: string; parser: MarkdownParser }) {
  const parsed = useParsed(text, parser)
  if (parsed === undefined) return <Late text={text} />
  // What cannot be parsed grows too.
  if (parsed.tree === undefined) return <PlainText text={text} />
  return <Tree parsed={parsed as Required<Parsed>} />
})

/** Until it is parsed a block is not there, so that it does not change before one's eyes; unless that takes long. */
function Late({ text }: { text: string }) {
  const [isLate, setIsLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setIsLate(true), LATE_MS)
    return () => clearTimeout(timer)
  }, [])
  return isLate ? <PlainText text={text} /> : null
}

const Tree = memo(function Tree({ parsed: { text, tree } }: { parsed: Parsed }) {
  const plugins = useMemo(() => [[useParsedTree, tree] as const], [tree]) as never
  return (
    <ErrorBoundary fallback={<PlainText text={text} />}>
      <ReactMarkdown remarkPlugins={plugins} components={components} urlTransform={keepUrl}>
        {text}
      </ReactMarkdown>
    </ErrorBoundary>
  )
})

/** The newest tree there is; while one text is being parsed, the next waits and those between are left out. */
function useParsed(text: string, parser: MarkdownParser): Parsed | undefined {
  const [parsed, setParsed] = useState<Parsed>()
  const newest = useRef(text)
  const isBusy = useRef(false)
  const isGone = useRef(false)
  newest.current = text

  useEffect(() => {
    isGone.current = false
    return () => {
      isGone.current = true
    }
  }, [])

  useEffect(() => {
    function parse(): void {
      isBusy.current = true
      const current = newest.current
      parser.parse(current, (tree) => {
        isBusy.current = false
        if (isGone.current) return
        setParsed({ text: current, tree })
        if (newest.current !== current) parse()
      })
    }
    if (!isBusy.current && newest.current === text) parse()
  }, [text, parser])
  return parsed
}

/** Stands in for the parser: the tree comes from the other thread. */
function useParsedTree(this: { parser?: unknown }, tree: Root): void {
  this.parser = () => tree
}

/** Addresses are judged where links are shown; nothing else has one. */
function keepUrl(url: string): string {
  return url
}

interface Props {
  readonly fallback: ReactNode
  readonly children: ReactNode
}

class ErrorBoundary extends Component<Props, { hasFailed: boolean }> {
  override state = { hasFailed: false }

  static getDerivedStateFromError(): { hasFailed: boolean } {
    return { hasFailed: true }
  }

  override render(): ReactNode {
    return this.state.hasFailed ? this.props.fallback : this.props.children
  }
}

const PIECE_LENGTH = 4000

function PlainText({ text }: { text: string }) {
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
function cutPlain(text: string): readonly string[] {
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
