/** A link in a text to a page of the console. */
import { Anchor, type AnchorProps } from '@mantine/core'
import { createLink } from '@tanstack/react-router'
import type { ComponentProps } from 'react'

type Props = AnchorProps & Omit<ComponentProps<'a'>, keyof AnchorProps>

export const TextLink = createLink((props: Props) => <Anchor {...props} />)
