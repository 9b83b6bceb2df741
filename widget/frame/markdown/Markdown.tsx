/** Renders the model's text as Markdown, block by block, without HTML, images or external requests. */
import { toJsxRuntime } from 'hast-util-to-jsx-runtime'
import type { Html, Root } from 'mdast'
import { toHast } from 'mdast-util-to-hast'
import { Component, Fragment, memo, type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import { jsx, jsxs } from 'react/jsx-runtime'
import { components } from './components.tsx'
import type { MarkdownParser } from './parser.ts'
import { splitBlocks, withDefinitions } from './split-blocks.ts'

const LATE_MS = 250

/** Number of blocks whose layout the browser can skip together. */
const GROUP_SIZE = 40
/**
 * Number of groups that are added at once, because thousands of new blocks would block the page for seconds.
 */
const GROUPS_AT_ONCE = 5

export function Markdown({ text, parser }: { text: string; parser: MarkdownParser }) {
  const blocks = useMemo(() => withDefinitions(splitBlocks(text)), [text])
  const count = useGrowing(Math.ceil(blocks.length / GROUP_SIZE))
  const groups = Array.from({ length: count }, (_, index) =>
    blocks.slice(index * GROUP_SIZE, (index + 1) * GROUP_SIZE),
  )
  return groups.map((group, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: groups are only ever added at the end
    <Group key={index} blocks={group} parser={parser} />
  ))
}

/** Returns a number that grows to `count` in steps, each in its own task. */
function useGrowing(count: number): number {
  const [reached, setReached] = useState(GROUPS_AT_ONCE)
  const isBehind = reached < count
  useEffect(() => {
    if (!isBehind) return
    const timer = setTimeout(() => setReached(reached + GROUPS_AT_ONCE))
    return () => clearTimeout(timer)
  }, [isBehind, reached])
  return Math.min(reached, count)
}

/** Renders again only if one of its blocks has changed. */
const Group = memo(
  function Group({ blocks, parser }: { blocks: readonly string[]; parser: MarkdownParser }) {
    return (
      <div className="blocks">
        {blocks.map((block, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: blocks are only ever added at the end
          <Block key={index} text={block} parser={parser} />
        ))}
      </div>
    )
  },
  (before, after) =>
    before.parser === after.parser &&
    before.blocks.length === after.blocks.length &&
    before.blocks.every((block, index) => block === after.blocks[index]),
)

/** A parsed block. Its text may be older than the current text, which is still being parsed. */
interface Parsed {
  readonly text: string
  readonly tree: Root | undefined
}

const Block = memo(function Block({ text, parser }: { text: string; parser: MarkdownParser }) {
  const parsed = useParsed(text, parser)
  if (parsed === undefined) return <Late text={text} />
  // Shows plain text, but parses again when the text grows.
  if (parsed.tree === undefined) return <PlainText text={text} />
  return <Tree text={parsed.text} tree={parsed.tree} />
})

/** Hides a block until it is parsed, to avoid visible changes; shows plain text if parsing takes long. */
function Late({ text }: { text: string }) {
  const [isLate, setIsLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setIsLate(true), LATE_MS)
    return () => clearTimeout(timer)
  }, [])
  return isLate ? <PlainText text={text} /> : null
}

const Tree = memo(function Tree({ text, tree }: { text: string; tree: Root }) {
  return (
    <ErrorBoundary fallback={<PlainText text={text} />}>
      <Elements tree={tree} />
    </ErrorBoundary>
  )
})

/** Renders the parsed tree; throws inside the boundary if a library cannot handle it. */
function Elements({ tree }: { tree: Root }) {
  return useMemo(
    () =>
      toJsxRuntime(toHast(tree, { handlers }), {
        ...{ Fragment, jsx, jsxs, components },
        ignoreInvalidStyle: true,
        passKeys: true,
        passNode: true,
      }),
    [tree],
  )
}

/** Shows HTML as text. */
const handlers = { html: (_state: unknown, { value }: Html) => ({ type: 'text', value }) as const }

/** Returns the newest parsed tree; parses one text at a time and skips intermediate texts. */
function useParsed(text: string, parser: MarkdownParser): Parsed | undefined {
  const [parsed, setParsed] = useState<Parsed>()
  const newest = useRef(text)
  const isBusy = useRef(false)
  const isUnmounted = useRef(false)
  newest.current = text

  useEffect(() => {
    isUnmounted.current = false
    return () => {
      isUnmounted.current = true
    }
  }, [])

  useEffect(() => {
    function parse(): void {
      isBusy.current = true
      const current = newest.current
      parser.parse(current, (tree) => {
        isBusy.current = false
        if (isUnmounted.current) return
        setParsed({ text: current, tree })
        if (newest.current !== current) parse()
      })
    }
    if (!isBusy.current && newest.current === text) parse()
  }, [text, parser])
  return parsed
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

/** Splits a text into pieces, preferably after white space; joining them restores the text. */
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

/** Returns an end that does not split a surrogate pair. */
function wholeLength(text: string, end: number): number {
  const code = text.charCodeAt(end - 1)
  return code >= 0xd800 && code < 0xdc00 ? end - 1 : end
}
