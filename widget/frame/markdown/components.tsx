/** Defines the elements for rendered Markdown, which load no external resources. */
import type { ElementContent } from 'hast'
import type { Components, ExtraProps } from 'hast-util-to-jsx-runtime'
import { createContext, type ReactNode, useContext, useState } from 'react'
import { CopyButton } from '../components/ActionButton.tsx'
import { PictureIcon } from '../components/icons.tsx'
import { Picture, Remote } from '../components/Picture.tsx'
import { useFrame } from '../frame-context.ts'
import { findHiddenHost, findSourceHost } from './find-hidden-host.ts'
import { isFromHost } from './image-hosts.ts'

type Props = ExtraProps & { readonly children?: ReactNode }

export const components: Components = {
  a: ({ href, children, node }) => (
    <Link address={href} text={textIn(node)}>
      {children}
    </Link>
  ),
  img: ({ src, alt }) => <Image address={typeof src === 'string' ? src : undefined} text={alt ?? ''} />,
  pre: CodeBlock,
  table: ({ children }: Props) => (
    <ScrollBox kind="table">
      <table dir="auto">{children}</table>
    </ScrollBox>
  ),
  h1: Heading,
  h2: Heading,
  h3: Heading,
  h4: Heading,
  h5: Heading,
  h6: Heading,
  p: ({ children }: Props) => <p dir="auto">{children}</p>,
  ul: ({ children }: Props) => <ul dir="auto">{children}</ul>,
  ol: ({ children, start }) => (
    <ol dir="auto" start={start}>
      {children}
    </ol>
  ),
  li: ({ children, className }) => <li className={className}>{children}</li>,
  blockquote: ({ children }: Props) => <blockquote dir="auto">{children}</blockquote>,
  // Renders check boxes as text, because task lists are read-only.
  input: ({ checked }) => <span aria-hidden="true">{checked ? '☑ ' : '☐ '}</span>,
  section: ({ children }: Props) => <>{children}</>,
  sup: ({ children }: Props) => <sup>{children}</sup>,
}

/** Renders all headings at one level below the window's headings, because models skip levels. */
function Heading({ children, node }: Props) {
  return (
    <h3 dir="auto" data-level={node?.tagName}>
      {children}
    </h3>
  )
}

/** Whether the content is inside a link, which can contain neither a link nor a button. */
const InsideLink = createContext(false)

/** Shows an image of a host that the agent allows, and a link to any other image. */
function Image({ address, text }: Omit<LinkProps, 'children'>) {
  const { agent } = useFrame()
  const isInsideLink = useContext(InsideLink)
  const [isBroken, setIsBroken] = useState(false)
  const onFailure = () => setIsBroken(true)
  const label = (
    <>
      <PictureIcon /> {text || address}
    </>
  )
  if (address === undefined || isBroken || !isFromHost(address, agent?.imageHosts ?? []))
    return isInsideLink ? (
      label
    ) : (
      <Link address={address} text={text}>
        {label}
      </Link>
    )
  if (isInsideLink) return <Remote source={address} name={text} onFailure={onFailure} />
  return <Picture source={address} name={text} onFailure={onFailure} />
}

/** Renders a link, or only its text if the address is not safe. */
export function Link({ address, text, children }: LinkProps) {
  const href = safeAddress(address)
  if (href === undefined) return <span>{children}</span>
  const host = findHiddenHost(href, text) ?? findSourceHost(href, text)
  return (
    <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">
      <InsideLink.Provider value={true}>
        <bdi>{children}</bdi>
      </InsideLink.Provider>
      {host !== undefined && <bdi className="host"> ({host})</bdi>}
    </a>
  )
}

interface LinkProps {
  readonly address: string | undefined
  /** The text content of `children`. */
  readonly text: string
  readonly children: ReactNode
}

interface TextTree {
  readonly value?: unknown
  readonly children?: readonly object[]
}

function textIn(node: TextTree | undefined): string {
  if (typeof node?.value === 'string') return node.value
  return (node?.children ?? []).map(textIn).join('')
}

function CodeBlock({ node }: ExtraProps) {
  const { strings } = useFrame().language
  const code = node?.children[0]
  if (code?.type !== 'element') return null
  const text = textIn(code)
  const { className } = code.properties
  const language = Array.isArray(className)
    ? String(className[0])
        .replace(/^language-/, '')
        .slice(0, 40)
    : ''
  return (
    <div className="code" dir="ltr">
      <div className="code-head">
        <span>{language}</span>
        <CopyButton text={text} name={strings.copyCode} />
      </div>
      <ScrollBox kind="code">
        <pre>
          <code>{code.children.map(renderColored)}</code>
        </pre>
      </ScrollBox>
    </div>
  )
}

/** Renders a part of colored code: text, or an element whose class sets the color. */
function renderColored(part: ElementContent, index: number): ReactNode {
  if (part.type === 'text') return part.value
  if (part.type !== 'element') return null
  const { className } = part.properties
  return (
    <span key={index} className={Array.isArray(className) ? className.join(' ') : undefined}>
      {part.children.map(renderColored)}
    </span>
  )
}

function ScrollBox({ kind, children }: { kind: 'code' | 'table'; children: ReactNode }) {
  const { strings } = useFrame().language
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
    <section className={`scroll-${kind}`} tabIndex={0} aria-label={strings[kind]}>
      {children}
    </section>
  )
}

const schemes: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:'])
const MAX_LENGTH = 2048

/** Returns the normalized address, or undefined if it is not an http, https or mailto URL, or is too long. */
function safeAddress(address: string | undefined): string | undefined {
  // Rejects relative addresses, which would refer to the frame's server.
  if (address === undefined || address.length > MAX_LENGTH || !URL.canParse(address)) return undefined
  const { protocol, href } = new URL(address)
  return schemes.has(protocol) ? href : undefined
}
