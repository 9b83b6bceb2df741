/** Shows the search field of a list. */
import './list.css'
import { TextInput } from '@mantine/core'
import { useEffect, useRef, useState } from 'react'
import { Icon } from '../../shell/icons.tsx'

/** Waiting time after the last key before the list is searched, in milliseconds. */
const PAUSE_MS = 200

interface SearchFieldProps {
  readonly label: string
  readonly placeholder: string
  readonly value: string
  readonly onChange: (value: string) => void
}

/** Searches when the user pauses, so that typing a word causes only one request. */
export function SearchField({ label, placeholder, value, onChange }: SearchFieldProps) {
  const [text, setText] = useState(value)
  const sent = useRef(value)
  const latest = useRef(onChange)
  latest.current = onChange
  // Shows the address's value after navigation, but never replaces what the user is typing.
  useEffect(() => {
    if (value === sent.current) return
    sent.current = value
    setText(value)
  }, [value])
  useEffect(() => {
    const wanted = text.trim()
    if (wanted === sent.current) return
    const timer = setTimeout(() => {
      sent.current = wanted
      latest.current(wanted)
    }, PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <TextInput
      aria-label={label}
      data-search
      className="list-search"
      maxLength={200}
      placeholder={placeholder}
      leftSection={<Icon name="search" size={16} />}
      value={text}
      onChange={(event) => setText(event.currentTarget.value)}
    />
  )
}
