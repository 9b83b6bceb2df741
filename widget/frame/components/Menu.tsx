/** Shows a menu button (WAI-ARIA menu button pattern). */
import { type KeyboardEvent, type ReactNode, type RefObject, useEffect, useRef, useState } from 'react'
import { useFrame } from '../frame-context.ts'
import { MenuIcon } from './icons.tsx'

export interface MenuItem {
  readonly name: string
  readonly icon: ReactNode
  readonly isDisabled?: boolean
  /** Explains why the item is disabled. */
  readonly hint?: string | undefined
  readonly isHidden?: boolean
  readonly act: () => void
}

interface Props {
  readonly items: readonly MenuItem[]
  readonly buttonRef: RefObject<HTMLButtonElement | null>
}

export function Menu({ items, buttonRef }: Props) {
  const { strings } = useFrame().language
  const [isOpen, setIsOpen] = useState(false)
  const shown = items.filter(({ isHidden }) => isHidden !== true)
  const menu = useRef<HTMLDivElement>(null)

  useEffect(() => {
    if (isOpen) itemsOf(menu.current)[0]?.focus()
  }, [isOpen])

  function close(): void {
    setIsOpen(false)
    buttonRef.current?.focus()
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (!isOpen) return
    const target = moveBy(event.key, itemsOf(menu.current))
    if (target !== undefined) target.focus()
    else if (event.key === 'Escape') close()
    else return
    event.preventDefault()
  }

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only handles the keys of the button and the items inside
    <div
      className="menu"
      onKeyDown={onKeyDown}
      onBlur={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setIsOpen(false)
      }}
    >
      <button
        type="button"
        className="plain-button"
        ref={buttonRef}
        aria-label={strings.menu}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        onClick={() => setIsOpen(!isOpen)}
      >
        <MenuIcon />
      </button>
      {isOpen && (
        <div className="menu-list" role="menu" ref={menu} aria-label={strings.menu}>
          {shown.map((item) => (
            <Item key={item.name} item={item} onAct={close} />
          ))}
        </div>
      )}
    </div>
  )
}

function Item({
  item: { name, icon, isDisabled = false, hint, act },
  onAct,
}: {
  item: MenuItem
  onAct: () => void
}) {
  return (
    <button
      type="button"
      role="menuitem"
      tabIndex={-1}
      aria-disabled={isDisabled}
      onClick={() => {
        if (isDisabled) return
        onAct()
        act()
      }}
    >
      {icon}
      <span>
        {name}
        {hint !== undefined && <small> {hint}</small>}
      </span>
    </button>
  )
}

function itemsOf(menu: HTMLElement | null): readonly HTMLElement[] {
  return [...(menu?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])]
}

function moveBy(key: string, items: readonly HTMLElement[]): HTMLElement | undefined {
  const at = items.indexOf(document.activeElement as HTMLElement)
  switch (key) {
    case 'ArrowDown':
      return items[(at + 1) % items.length]
    case 'ArrowUp':
      return items.at(at <= 0 ? -1 : at - 1)
    case 'Home':
      return items[0]
    case 'End':
      return items.at(-1)
    default:
      return undefined
  }
}
