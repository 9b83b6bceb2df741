/** Lets the visitor rate an answer. */
import type { ReactNode } from 'react'
import type { Rating } from '../conversation.ts'
import { useFrame } from '../frame-context.ts'
import { Action } from './ActionButton.tsx'
import { BadIcon, GoodIcon } from './icons.tsx'
import { OnDemand } from './OnDemand.tsx'
import type { RatingState } from './use-rating.ts'

export function RatingButtons({ rating }: { rating: RatingState }) {
  const { strings } = useFrame().language
  const { given, isFormOpen, isThanking, buttons, choose } = rating
  const button = (value: Rating['value'], name: string, icon: ReactNode) => (
    <Action
      name={name}
      icon={icon}
      isPressed={given?.value === value}
      isExpanded={isFormOpen && given?.value === value}
      act={() => choose(value)}
    />
  )
  return (
    <span className="rate" ref={buttons}>
      {button('up', strings.rating.good, <GoodIcon />)}
      {button('down', strings.rating.bad, <BadIcon />)}
      <span className="thanks" role="status">
        {isThanking && strings.rating.thanks}
      </span>
    </span>
  )
}

/** Shows the form below the buttons. */
export function RatingDetails({ rating }: { rating: RatingState }) {
  const load = async () => (await import('./RatingForm.tsx')).RatingForm
  return <OnDemand load={load} props={{ rating }} onFailure={rating.close} />
}
